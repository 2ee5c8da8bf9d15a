//! Channels of a reply besides its answer.

use super::{Tags, Trim};
use crate::event::REASONING;

/// A channel of a reply besides its answer, with the family's rules for it.
#[derive(Debug, Clone, Copy)]
pub struct ChannelSyntax {
    /// Name under which its text is reported, such as `reasoning`.
    pub name: &'static str,
    /// Markers around the channel, and the layout the family writes inside them.
    pub tags: Tags,
    /// True if the start marker is text of the channel as well: the start of a sentence that the prompt
    /// wrote.
    pub start_is_text: bool,
    /// Destination of its text, unless the caller wants all text in the answer.
    pub place: Place,
    /// Optional label right after the start that is not text: `thought\n` in Gemma 4.
    pub label: &'static str,
    /// Meaning of a reply without markers, if its prompt is unknown.
    pub(crate) unmarked: Unmarked,
    /// Meaning of a call's or the answer's marker inside the channel.
    pub(crate) calls_inside: CallsInside,
    /// Meaning of an end marker in the answer.
    pub(crate) unmatched_end: UnmatchedEnd,
    /// Trimming of the start of the channel's text.
    pub(crate) trim_start: Trim,
    /// Trimming of the end of the channel's text.
    pub(crate) trim_end: Trim,
    /// Trimming of the start of the answer after the channel.
    pub(crate) trim_after: Trim,
}

impl ChannelSyntax {
    /// Reasoning with the most common rules: opened by its marker or by the prompt; line breaks at its
    /// borders are layout.
    pub const fn new(tags: Tags) -> Self {
        Self {
            name: REASONING,
            tags,
            start_is_text: false,
            place: Place::Separate,
            label: "",
            unmarked: Unmarked::Answer,
            calls_inside: CallsInside::Text,
            unmatched_end: UnmatchedEnd::EndsChannel,
            trim_start: Trim::LineBreaks,
            trim_end: Trim::LineBreaks,
            trim_after: Trim::LineBreaks,
        }
    }

    /// Reasoning whose text, and the answer after it, are kept unchanged.
    pub const fn untrimmed(tags: Tags) -> Self {
        let (trim_start, trim_end, trim_after) = (Trim::Nothing, Trim::Nothing, Trim::Nothing);
        Self { trim_start, trim_end, trim_after, ..Self::new(tags) }
    }
}

/// Destination of the text of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Separate from the answer.
    Separate,
    /// In the answer, markers included.
    InAnswer,
}

/// Meaning of a reply without markers, if its prompt is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unmarked {
    /// The answer.
    Answer,
    /// Text of the channel: all templates of the family open it.
    Channel,
}

/// Meaning of a call's or the answer's marker inside the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallsInside {
    /// Text of the channel.
    Text,
    /// At the very start of a channel opened by the prompt, it ends the channel: the model skipped it. Later
    /// it is text.
    AtStart,
    /// End of the channel.
    End,
}

/// Meaning of an end marker in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnmatchedEnd {
    /// Text.
    Text,
    /// Text; but if the prompt is unknown and it is the first marker of a reply, the prompt opened the
    /// channel. The reply is held back until its first marker.
    EndsChannel,
    /// Dropped at the start of the reply, text later.
    DroppedAtStart,
    /// Dropped.
    Dropped,
}
