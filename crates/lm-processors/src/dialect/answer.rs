//! Syntax of the answer and of messages within a reply.

use super::{Tags, Trim};

/// Markers and layout of the answer.
#[derive(Debug)]
pub struct AnswerSyntax {
    /// Markers around the answer; the parser drops them everywhere.
    pub tags: Tags,
    /// Other markers that the parser drops.
    pub dropped: &'static [&'static str],
    /// Trimming of both ends of the answer.
    pub(crate) trim: Trim,
    /// Whitespace between the answer and the calls after it.
    pub(crate) before_calls: BeforeCalls,
    /// Trimming of the start of the text after a call.
    pub(crate) trim_after_calls: Trim,
}

impl AnswerSyntax {
    /// Text without markers, unchanged.
    pub const PLAIN: Self = Self {
        tags: Tags::NONE,
        dropped: &[],
        trim: Trim::Nothing,
        before_calls: BeforeCalls::Text,
        trim_after_calls: Trim::Nothing,
    };
}

/// Meaning of the whitespace between the answer and the first call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BeforeCalls {
    /// Text of the answer.
    Text,
    /// A line break is layout if another one follows the marker, so that the marker has its own line.
    OwnLine,
    /// This text is layout, written by the family's template. Whitespace before it is text.
    Layout(&'static str),
    /// All of it is layout.
    Dropped,
}

/// Messages with headers that state the recipient and the channel: `start` HEADER `text` TEXT `end`.
///
/// The dialect's channels and calls state what the family writes, headers included. This describes the parts
/// of a header, so that they are parsed in any order.
#[derive(Debug)]
pub(crate) struct MessageSyntax {
    /// Start of every message but the first, whose start is in the prompt.
    pub(crate) start: &'static str,
    /// Prefix of the channel's name; may be empty.
    pub(crate) channel: &'static str,
    /// Prefix of the recipient's name.
    pub(crate) recipient: &'static str,
    /// End of a header.
    pub(crate) text: &'static str,
    /// Ends of a message.
    pub(crate) ends: &'static [&'static str],
    /// Meaning of messages by channel or recipient. A message for any other recipient is a call.
    pub(crate) names: &'static [(&'static str, MessageKind)],
    /// Prefix of a recipient's name if it is a tool.
    pub(crate) tool_prefix: &'static str,
}

/// Meaning of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageKind {
    /// Part of the answer.
    Answer,
    /// Reasoning: text of the dialect's first channel.
    Reasoning,
    /// A call. With [`CallBody::Named`](super::CallBody::Named), the header holds the name and the text the
    /// arguments; any other call is in the text.
    Call,
}
