//! The answer, and messages within a reply.

use super::{Tags, Trim};

/// The answer's own markers and layout.
#[derive(Debug)]
pub struct AnswerSyntax {
    /// Markers the family writes around the answer; the parser drops them wherever they stand.
    pub tags: Tags,
    /// Other texts that are dropped: each from its `open` to its `close`, or just the `open` where that is empty.
    pub dropped: &'static [Tags],
    /// What the parser takes off both ends of the answer.
    pub trim: Trim,
    /// The whitespace between the answer and the calls after it.
    pub before_calls: BeforeCalls,
    /// Text after a call.
    pub after_calls: AfterCalls,
}

impl AnswerSyntax {
    /// Text as it comes.
    pub const PLAIN: Self = Self {
        tags: Tags::NONE,
        dropped: &[],
        trim: Trim::Nothing,
        before_calls: BeforeCalls::Text,
        after_calls: AfterCalls::Text(Trim::Nothing),
    };
}

/// What the whitespace between the answer and the first call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeforeCalls {
    /// Text of the answer.
    Text,
    /// A line break is layout when another one follows the marker, which so has a line of its own.
    OwnLine,
    /// This text is layout: the family's template writes it itself. Whitespace before it is text.
    Layout(&'static str),
    /// All of it is layout.
    Dropped,
}

/// What text after a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterCalls {
    /// Text of the answer; this is taken off its beginning.
    Text(Trim),
    /// Noise of a model that should have ended its turn: it is dropped. Further calls are still read, and text before
    /// such a one is text.
    Dropped,
}

/// Messages with headers, which say whom a message is for and which channel it belongs to: `start` HEADER `text` TEXT `end`.
///
/// What the family writes is said by the dialect's channels and calls, headers included. This says how headers are
/// taken apart, so that their parts are understood in any order.
#[derive(Debug)]
pub struct MessageSyntax {
    /// Begins a message after the first, whose beginning the prompt has written.
    pub start: &'static str,
    /// Stands before the channel's name; may be empty.
    pub channel: &'static str,
    /// Stands before the recipient's name.
    pub recipient: &'static str,
    /// Ends a header.
    pub text: &'static str,
    /// End a message.
    pub ends: &'static [&'static str],
    /// What messages in these channels, and for these recipients, are. A message for anyone else is a call.
    pub names: &'static [(&'static str, Meaning)],
    /// What a recipient's name begins with when it is a tool.
    pub tool_prefix: &'static str,
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// A part of the answer.
    Answer,
    /// Reasoning: text of the dialect's first channel.
    Reasoning,
    /// A call. Of [`CallBody::Named`](super::CallBody::Named) the header says the name and the text the arguments; any other call is in the text.
    Call,
}
