//! Responses of any API: objects and frames of streams.

use lm_conversation::{ConversationEvent, Reply, ScoredToken};
use serde_json::Value;

use crate::error::ApiError;

/// A finished choice of a completion.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The reply.
    pub reply: Reply,
    /// Log probabilities of its tokens, if the request asks for them.
    pub logprobs: Option<Vec<ScoredToken>>,
    /// Log probabilities of the prompt's tokens but the first, if the request asks for them.
    pub prompt_logprobs: Vec<ScoredToken>,
}

/// Frame of a streamed response.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// Name of the event, in APIs whose events have names.
    pub event: Option<&'static str>,
    /// The object.
    pub data: Value,
}

impl Frame {
    /// Creates a frame without a name.
    pub fn new(data: Value) -> Self {
        Self { event: None, data }
    }

    /// Creates a frame with a name.
    pub fn named(event: &'static str, data: Value) -> Self {
        Self { event: Some(event), data }
    }
}

/// Encoding of the frames of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events; the last one has the data `[DONE]`.
    EventsUntilDone,
    /// Server-sent events.
    Events,
    /// Lines of JSON.
    Lines,
}

/// Writer of one API's response to one request: either the object of its finished choices, or the frames of
/// their events.
pub trait ResponseWriter: Send + Unpin + 'static {
    /// Encoding of the frames.
    const FRAMING: Framing;
    /// Name of the event that keeps a silent stream open; `None` (the default): a comment does.
    const KEEP_ALIVE: Option<&'static str> = None;

    /// Writes the object of a response that is not streamed.
    fn object(&mut self, choices: &[Choice]) -> Value;

    /// Writes the frames of the next event of a choice.
    ///
    /// # Panics
    /// When the request has no such choice.
    fn frames(&mut self, choice: usize, event: &ConversationEvent) -> Vec<Frame>;

    /// Writes the error that ends a stream.
    fn error(&mut self, error: &ApiError) -> Frame;
}
