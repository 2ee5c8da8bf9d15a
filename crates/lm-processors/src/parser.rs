//! Interface of the streaming parser.

use std::sync::Arc;

use lm_template::ToolSpec;

use crate::channel::Channel;
use crate::dialect::{Undeclared, UnmarkedCalls};
use crate::event::ProcessorEvent;
use crate::reply_form::ReplyForm;
use crate::tokens::MarkerTokens;

/// Handling of malformed tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnMalformed {
    /// Reported as [`ProcessorEvent::Malformed`].
    #[default]
    Error,
    /// Passed on as text of the answer, markers included. A call whose start was reported cannot be
    /// retracted: it still ends with [`ProcessorEvent::Malformed`], and a message assembled from the events
    /// contains its text.
    Text,
}

/// Condition for reading call markers as calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadCalls {
    /// If tools are declared; otherwise they are plain text.
    #[default]
    WhenDeclared,
    /// In all replies: the tools may be known elsewhere.
    Always,
    /// In no reply.
    Never,
}

/// Destination of the text of channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReasoningText {
    /// Separate events.
    #[default]
    Split,
    /// The answer with its markers, including the one that opened a channel in the prompt.
    Inline,
}

/// Recovery from defects of a reply.
///
/// Some defects can also be intended text. A reply generated under the family's grammar has no defects, and
/// is read as the grammar accepted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recovery {
    /// A value without its closing marker ends before the next parameter of the tool, or with its call; a
    /// call in an unterminated channel is a call.
    #[default]
    On,
    /// The first closing marker ends a value, and all content of a channel is its text.
    Off,
}

/// Options for parsing one reply.
#[derive(Debug, Clone, Default)]
pub struct ParserOptions {
    /// Declared tools; their schemas type the values of formats without types.
    pub tools: Arc<[ToolSpec]>,
    /// Condition for reading calls.
    pub calls: ReadCalls,
    /// The template's own text at the end of the prompt, which may have opened a channel or a call; empty if
    /// the prompt is known to end otherwise. `None` if the prompt is unknown: text may then be held back
    /// until the reply shows the state in which it started.
    pub prompt_tail: Option<Arc<str>>,
    /// Channels that replace the family's; `None` uses the family's.
    pub channels: Option<Arc<[Channel]>>,
    /// Destination of the text of channels.
    pub reasoning: ReasoningText,
    /// Handling of malformed calls, and of undeclared ones that are refused.
    pub on_malformed: OnMalformed,
    /// Handling of a call that the reply does not end.
    pub on_unfinished: OnMalformed,
    /// Handling of calls of undeclared tools, if any tools are declared; `None` uses the family's rule.
    /// Without a marker (bare JSON), only the name of a declared tool makes a call.
    pub undeclared: Option<Undeclared>,
    /// Reading of calls without markers; `None` uses the family's rule.
    pub unmarked: Option<UnmarkedCalls>,
    /// Recovery from defects of the reply; off for replies under a grammar.
    pub recovery: Recovery,
    /// The allowed form of the reply, if a grammar enforces one; `None` for unconstrained replies.
    pub form: Option<ReplyForm>,
    /// Added tokens in the family's markers; empty if the tokenizer is unknown.
    pub tokens: MarkerTokens,
}

/// Incremental parser of one reply.
///
/// Any split of the text gives the same events, except for the boundaries of text, channel text and
/// fragments.
pub trait OutputParser: Send {
    /// Feeds more text; returns the events that are certain. The text contains no token of
    /// [`ParserOptions::tokens`]: the same characters are plain text.
    fn push(&mut self, delta: &str) -> Vec<ProcessorEvent>;

    /// Feeds the whole text of one added token.
    fn push_token(&mut self, token: &str) -> Vec<ProcessorEvent> {
        self.push(token)
    }

    /// Ends the reply; returns the events held back.
    fn finish(&mut self) -> Vec<ProcessorEvent>;
}
