//! The streaming parser's interface.

use std::sync::Arc;

use lm_template::ToolSpec;

use crate::channel::Channel;
use crate::dialect::Undeclared;
use crate::event::ProcessorEvent;
use crate::reply_form::ReplyForm;
use crate::tokens::MarkerTokens;

/// What becomes of text that began as a tool call and is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnMalformed {
    /// It is reported as [`ProcessorEvent::Malformed`].
    #[default]
    Error,
    /// It is passed on as text of the answer, markers included. A call whose beginning was reported cannot be taken
    /// back: it ends with [`ProcessorEvent::Malformed`] even so, and a message put together of the events has its text.
    Text,
}

/// When markers of calls are read as calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadCalls {
    /// When tools were declared; else they are plain text.
    #[default]
    WhenDeclared,
    /// Always: the tools may be known elsewhere.
    Always,
    /// Never.
    Never,
}

/// Where the text of channels goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReasoningText {
    /// Into events of their own.
    #[default]
    Split,
    /// It stays in the answer, markers included, also that with which the prompt opened a channel.
    Inline,
}

/// Whether defects of a reply are mended.
///
/// Some of them can be told from a text that is meant so only as long as nobody asks for such a text. A reply that was
/// written under the family's grammar has no defects, and what it says is what the grammar took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recovery {
    /// A value whose closing marker is missing ends before the next parameter of the tool, or with its call; a call in
    /// a channel that the reply does not end is a call.
    #[default]
    On,
    /// The first closing marker ends a value, and what stands in a channel is its text.
    Off,
}

/// How a parser is to read one reply.
#[derive(Debug, Clone, Default)]
pub struct ParserOptions {
    /// The tools the model was given; the formats that write values without types are typed by their schemas.
    pub tools: Arc<[ToolSpec]>,
    /// When there are calls.
    pub calls: ReadCalls,
    /// The template's own text at the end of the prompt, which may have opened a channel or a call; empty when the
    /// prompt is known to end otherwise. None when the prompt is not known: then text may be held back until the
    /// reply tells where it began.
    pub prompt_tail: Option<Arc<str>>,
    /// The channels of the reply in place of the family's; none leaves them to the family.
    pub channels: Option<Arc<[Channel]>>,
    /// Where the text of channels goes.
    pub reasoning: ReasoningText,
    /// What becomes of malformed calls, and of undeclared ones that are refused.
    pub on_malformed: OnMalformed,
    /// What becomes of a call that the reply did not end.
    pub on_unfinished: OnMalformed,
    /// What becomes of calls of tools that were not declared, when some were; none leaves it to the family.
    pub undeclared: Option<Undeclared>,
    /// Whether defects of the reply are mended: off where a grammar wrote it.
    pub recovery: Recovery,
    /// What the reply may be, when a grammar holds it to that; none when the model writes what it likes.
    pub form: Option<ReplyForm>,
    /// The added tokens that stand in the family's markers; empty when the tokenizer is not known.
    pub tokens: MarkerTokens,
}

/// Reads one reply of a model, piece by piece.
///
/// Any split of the text gives the same events, but for where runs of text, channel text and fragments are cut.
pub trait OutputParser: Send {
    /// Takes more text, and gives what is certain by now. Of [`ParserOptions::tokens`] it holds none: what reads as one
    /// is text.
    fn push(&mut self, delta: &str) -> Vec<ProcessorEvent>;

    /// Takes the whole text of one added token.
    fn push_token(&mut self, token: &str) -> Vec<ProcessorEvent> {
        self.push(token)
    }

    /// Gives what was held back; the reply has ended.
    fn finish(&mut self) -> Vec<ProcessorEvent>;
}
