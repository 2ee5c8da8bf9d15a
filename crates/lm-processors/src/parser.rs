//! The streaming parser's interface.

use std::sync::Arc;

use lm_template::ToolSpec;

use crate::event::ProcessorEvent;

/// What becomes of text that began as a tool call and is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnMalformed {
    /// It is reported as [`ProcessorEvent::Malformed`].
    #[default]
    Error,
    /// It is passed on as text of the answer, markers included.
    Text,
}

/// How a parser is to read one reply.
#[derive(Debug, Clone, Default)]
pub struct ParserOptions {
    /// The tools the model was given. Without any, nothing is a call: markers are plain text.
    pub tools: Arc<[ToolSpec]>,
    /// Whether the prompt ended inside the reasoning channel, so that the reply begins there.
    pub in_reasoning: bool,
    /// What becomes of malformed calls.
    pub on_malformed: OnMalformed,
}

/// Reads one reply of a model, piece by piece.
///
/// Any split of the text gives the same events, but for where runs of text, channel text and fragments are cut.
pub trait OutputParser: Send {
    /// Takes more text, and gives what is certain by now.
    fn push(&mut self, delta: &str) -> Vec<ProcessorEvent>;

    /// Gives what was held back; the reply has ended.
    fn finish(&mut self) -> Vec<ProcessorEvent>;
}
