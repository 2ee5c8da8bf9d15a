//! Answers to requests of any API.

use std::time::Instant;

use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use lm_api::{ChatRequest, ResponseWriter, Running};

use super::sse;
use crate::metrics::ReplyObserver;
use crate::models::Engines;
use crate::response::{ErrorResponse, json};
use crate::state::{App, CancelOnDrop};

/// Answers a request, as one object or as a stream of frames.
pub(crate) async fn respond<W: ResponseWriter>(
    app: &App,
    request: ChatRequest,
    writer: impl FnOnce(&ChatRequest, &str) -> W + Send + 'static,
) -> Result<Response, ErrorResponse> {
    run(app, request, move |engines, request| engines.chat.start(request, writer)).await
}

/// [`respond`] with what `start` starts.
pub(crate) async fn run<W: ResponseWriter>(
    app: &App,
    request: ChatRequest,
    start: impl FnOnce(&Engines, ChatRequest) -> lm_api::Result<Running<W>> + Send + 'static,
) -> Result<Response, ErrorResponse> {
    let is_stream = request.stream.is_some();
    let Started { running, cancel, headers } = self::start(app, request, start).await?;
    let mut response = match is_stream {
        true => sse::respond(running.into_stream(), cancel, app.config.limits.keep_alive).await?,
        false => json(StatusCode::OK, &running.object().await?),
    };
    response.headers_mut().extend(headers);
    Ok(response)
}

/// A request that runs.
pub(crate) struct Started<W> {
    pub running: Running<W>,
    /// Cancels it.
    pub cancel: CancelOnDrop,
    /// Headers of the response that tell what was left out of the request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// Starts a request.
pub(crate) async fn start<W: ResponseWriter>(
    app: &App,
    mut request: ChatRequest,
    start: impl FnOnce(&Engines, ChatRequest) -> lm_api::Result<Running<W>> + Send + 'static,
) -> Result<Started<W>, ErrorResponse> {
    let began = Instant::now();
    let (model, metrics) = (app.models.find(request.model.as_deref())?, app.metrics.clone());
    let cancel = CancelOnDrop(app.cancel.child());
    request.turn.cancel = cancel.0.clone();
    request.turn.deadline = app.deadline();
    let left_out = [(TOOLS_LEFT_OUT, request.dropped_tools()), (INPUT_LEFT_OUT, request.dropped_contents())];
    let left_out = left_out.map(|(header, kinds)| self::left_out(kinds).map(|kinds| (header, kinds)));
    let started = move || {
        let choices = request.choices;
        let running = model.engines()?.kept(request.keep_alive, |engines| start(engines, request))?;
        let mut observer = ReplyObserver::new(&metrics, model.name(), choices, began);
        Ok(running.observed(move |event| observer.observe(event)))
    };
    let running = app.prepare(started).await?;
    let messages = Some(running.messages_left_out()).filter(|messages| *messages > 0);
    let messages = messages.map(|messages| (MESSAGES_LEFT_OUT, messages.into()));
    let headers = left_out.into_iter().flatten().chain(messages).collect();
    Ok(Started { running, cancel, headers })
}

/// Counts the tokens of a request's prompt.
pub(crate) async fn prompt_tokens(app: &App, request: ChatRequest) -> Result<usize, ErrorResponse> {
    let model = app.models.find(request.model.as_deref())?;
    Ok(app.prepare(move || model.engines()?.chat.prompt_tokens(request)).await?)
}

/// Header with the types of the tools that were left out of a request.
const TOOLS_LEFT_OUT: HeaderName = HeaderName::from_static("x-tools-left-out");
/// Header with the types of the contents of messages that were left out of a request.
const INPUT_LEFT_OUT: HeaderName = HeaderName::from_static("x-input-left-out");

/// Header with the number of the oldest messages that were left out of a request.
const MESSAGES_LEFT_OUT: HeaderName = HeaderName::from_static("x-messages-left-out");

/// Value of a header; `None` if nothing was left out.
fn left_out(kinds: &[String]) -> Option<HeaderValue> {
    let is_plain = |kind: &&String| kind.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    let kinds: Vec<&str> = kinds.iter().filter(is_plain).take(16).map(String::as_str).collect();
    HeaderValue::from_str(&kinds.join(", ")).ok().filter(|value| !value.is_empty())
}
