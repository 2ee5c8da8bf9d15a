//! Questions of servers to the user during a call: elicitation.

use super::McpLimits;
use crate::names::shown;
use lm_tools::{Map, Value};
use rmcp::model::{
    ClientCapabilities, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    FormElicitationCapability, InputRequest, InputRequests, InputResponses, UrlElicitationCapability,
};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Maximum number of questions of a server that are open at the same time; further ones are declined.
const MAX_OPEN: usize = 8;
/// Maximum number of questions of one answer to a call.
const MAX_OF_ANSWER: usize = 64;

/// A question of a server to the user, during a call of one of its tools.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Elicitation {
    /// The server.
    pub server: String,
    /// The question. It is untrusted text.
    pub message: String,
    /// Way to answer.
    pub mode: ElicitationMode,
    asking: Asking,
}

impl Elicitation {
    /// Returns false once the call has ended: an answer is not sent any more.
    pub fn is_open(&self) -> bool {
        self.asking.0.strong_count() > 0
    }
}

/// The wait for an answer. All are equal.
#[derive(Clone, Debug, Default)]
struct Asking(Weak<()>);

impl PartialEq for Asking {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Way to answer an [`Elicitation`].
#[derive(Clone, Debug, PartialEq)]
pub enum ElicitationMode {
    /// Values for a form.
    Form {
        /// JSON schema of the values: an object whose properties are strings, numbers, booleans, and choices
        /// among strings.
        schema: Value,
    },
    /// A page that the user opens in a browser, for what should not go through this program. Accepting means
    /// that the user agrees to open it.
    Url {
        /// Address of the page, `https://…` or `http://…`.
        url: String,
    },
}

/// Answer to an [`Elicitation`].
#[derive(Clone, Debug, PartialEq)]
pub enum ElicitationAnswer {
    /// The values of the form; none for a page.
    Accept(Map<String, Value>),
    /// The user says no.
    Decline,
    /// The user gives no answer.
    Cancel,
}

/// Function that asks the user.
pub(super) type Ask =
    Arc<dyn Fn(Elicitation) -> Pin<Box<dyn Future<Output = ElicitationAnswer> + Send>> + Send + Sync>;

/// The questions of one server, and the time of its calls, which stands still during them.
pub(super) struct Questions {
    server: Arc<str>,
    ask: Option<Ask>,
    limits: McpLimits,
    /// Number of open questions.
    open: watch::Sender<usize>,
    /// Number of running calls.
    calls: watch::Sender<usize>,
}

impl Questions {
    pub fn new(server: Arc<str>, ask: Option<Ask>, limits: McpLimits) -> Self {
        Self { server, ask, limits, open: watch::Sender::new(0), calls: watch::Sender::new(0) }
    }

    /// Features of this client: tasks, and questions if somebody answers them.
    pub fn capabilities(&self) -> ClientCapabilities {
        let mut capabilities = ClientCapabilities::builder().enable_tasks().build();
        capabilities.elicitation = self.ask.as_ref().map(|_| {
            let mut modes = ElicitationCapability::new();
            modes.form = Some(FormElicitationCapability::new());
            modes.url = Some(UrlElicitationCapability::new());
            modes
        });
        capabilities
    }

    /// Counts a call until the guard is dropped: questions without one are declined.
    pub fn call(&self) -> Call<'_> {
        self.calls.send_modify(|calls| *calls += 1);
        Call(self)
    }

    /// Asks the user. A question that nobody can answer is declined.
    pub async fn ask(&self, question: ElicitRequestParams) -> ElicitResult {
        let declined = || ElicitResult::new(ElicitationAction::Decline);
        let mut calls = self.calls.subscribe();
        let is_in_a_call = *calls.borrow_and_update() > 0;
        let Some(ask) = self.ask.as_ref().filter(|_| is_in_a_call) else { return declined() };
        let Some(mut question) = self.question(question) else { return declined() };
        let asking = Arc::new(());
        question.asking = Asking(Arc::downgrade(&asking));
        let Some(_open) = Open::of(&self.open) else { return declined() };
        let is_form = matches!(question.mode, ElicitationMode::Form { .. });
        let answer = tokio::select! {
            answer = ask(question) => answer,
            _ = calls.wait_for(|calls| *calls == 0) => ElicitationAnswer::Cancel,
        };
        drop(asking);
        match answer {
            ElicitationAnswer::Accept(values) if is_form => {
                ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(values))
            }
            ElicitationAnswer::Accept(_) => ElicitResult::new(ElicitationAction::Accept),
            ElicitationAnswer::Decline => declined(),
            ElicitationAnswer::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        }
    }

    /// Reads a question within the limits.
    fn question(&self, question: ElicitRequestParams) -> Option<Elicitation> {
        let (message, mode) = match question {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(requested_schema).ok()?;
                let is_small = schema.to_string().len() <= self.limits.max_schema_bytes;
                (message, is_small.then_some(ElicitationMode::Form { schema })?)
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                let is_page =
                    reqwest::Url::parse(&url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
                (message, is_page.then_some(ElicitationMode::Url { url })?)
            }
            _ => return None,
        };
        let end = message.floor_char_boundary(self.limits.max_description_bytes);
        let message = message[..end].to_owned();
        Some(Elicitation { server: self.server.to_string(), message, mode, asking: Asking::default() })
    }

    /// Answers the requests of a call that needs more input. `None` if one of them is no question to the
    /// user, there are more than 64, or nobody answers any.
    pub async fn answer(&self, requests: InputRequests) -> Option<InputResponses> {
        self.ask.as_ref().filter(|_| requests.len() <= MAX_OF_ANSWER)?;
        let mut responses = InputResponses::new();
        for (key, request) in requests {
            let InputRequest::Elicitation(question) = request else {
                tracing::info!(server = &*self.server, key = shown(&key), "a request that is not supported");
                return None;
            };
            let answer = self.ask(question.params).await;
            responses.insert(key, serde_json::to_value(answer).ok()?);
        }
        Some(responses)
    }

    /// Waits for the time limit of a call, and returns it. The time of questions does not count.
    pub async fn late(&self, timeout: Option<Duration>) -> Duration {
        let Some(timeout) = timeout else { return std::future::pending().await };
        let (mut left, mut open) = (timeout, self.open.subscribe());
        loop {
            let _ = open.wait_for(|open| *open == 0).await; // The sender lives as long as this.
            let start = Instant::now();
            tokio::select! {
                () = tokio::time::sleep(left) => return timeout,
                _ = open.wait_for(|open| *open > 0) => left = left.saturating_sub(start.elapsed()),
            }
        }
    }
}

impl fmt::Debug for Questions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Questions").field("server", &self.server).finish_non_exhaustive()
    }
}

/// A running call.
pub(super) struct Call<'a>(&'a Questions);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.calls.send_modify(|calls| *calls -= 1);
    }
}

/// An open question.
struct Open<'a>(&'a watch::Sender<usize>);

impl<'a> Open<'a> {
    /// Counts a question; `None` if there are too many.
    fn of(count: &'a watch::Sender<usize>) -> Option<Self> {
        let is_counted = count.send_if_modified(|open| {
            let is_free = *open < MAX_OPEN;
            *open += usize::from(is_free);
            is_free
        });
        is_counted.then_some(Self(count))
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}
