//! The address of this machine that the browser returns to after a login.

use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Html;
use axum::routing::get;
use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Time that the page has to reach the browser.
const PAGE_TIMEOUT: Duration = Duration::from_secs(1);

/// A listener for the one answer of the authorization server.
pub(super) struct Redirect {
    listener: TcpListener,
    /// Its address.
    pub url: String,
}

/// The answer of the authorization server, which the browser brings.
pub(super) enum Answer {
    /// The user agreed.
    Code {
        code: String,
        /// `iss` of RFC 9207.
        issuer: Option<String>,
    },
    /// The user or the server refused.
    Refused { error: String, description: Option<String> },
}

/// The state of the login that is waited for, and its receiver until the answer.
struct Waiting {
    state: String,
    answer: Mutex<Option<oneshot::Sender<Answer>>>,
}

type Page = (StatusCode, Html<&'static str>);

const TAKEN: Page = (
    StatusCode::OK,
    Html("<!doctype html><title>lm</title><p>The program has the answer. This page can be closed.</p>"),
);
const UNKNOWN: Page = (
    StatusCode::BAD_REQUEST,
    Html(
        "<!doctype html><title>lm</title><p>This is not the answer to a login that the program waits for.</p>",
    ),
);

impl Redirect {
    /// Listens on this machine, on a free port if none is given.
    pub async fn listen(port: Option<u16>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0))).await?;
        let url = format!("http://{}/callback", listener.local_addr()?);
        Ok(Self { listener, url })
    }

    /// Waits for the answer with this state; others are refused, and change nothing.
    pub async fn answer(self, state: String) -> io::Result<Answer> {
        let (sender, receiver) = oneshot::channel();
        let waiting = Arc::new(Waiting { state, answer: Mutex::new(Some(sender)) });
        let (stop, stopped) = oneshot::channel::<()>();
        let router = Router::new().route("/callback", get(callback)).with_state(waiting);
        let serving = axum::serve(self.listener, router).with_graceful_shutdown(async {
            let _ = stopped.await; // Also at the end of the login.
        });
        let mut serving = Box::pin(serving.into_future());
        let answer = tokio::select! {
            answer = receiver => answer.map_err(io::Error::other),
            ended = &mut serving => Err(ended.err().unwrap_or_else(|| io::Error::other("the listener has ended"))),
        };
        drop(stop);
        let _ = tokio::time::timeout(PAGE_TIMEOUT, serving).await; // The answer is here in any case.
        answer
    }
}

async fn callback(
    State(waiting): State<Arc<Waiting>>,
    Query(mut query): Query<HashMap<String, String>>,
) -> Page {
    if query.get("state") != Some(&waiting.state) {
        return UNKNOWN;
    }
    let answer = match (query.remove("code"), query.remove("error")) {
        (_, Some(error)) => Answer::Refused { error, description: query.remove("error_description") },
        (Some(code), None) => Answer::Code { code, issuer: query.remove("iss") },
        (None, None) => return UNKNOWN,
    };
    let sender = waiting.answer.lock().unwrap_or_else(PoisonError::into_inner).take();
    match sender.map(|sender| sender.send(answer)) {
        Some(Ok(())) => TAKEN,
        _ => UNKNOWN,
    }
}
