//! Channels of a reply beside its answer.

use super::{Tags, Trim};
use crate::event::REASONING;

/// A channel of a reply beside its answer, and what its family does around it.
#[derive(Debug, Clone, Copy)]
pub struct ChannelSyntax {
    /// The name its text is reported under, such as [`REASONING`](crate::REASONING).
    pub name: &'static str,
    /// The markers around it, and the layout the family writes inside them.
    pub tags: Tags,
    /// Whether the start is text of the channel too: the beginning of a sentence that the prompt wrote.
    pub start_is_text: bool,
    /// Where its text goes, unless the caller wants all text in the answer.
    pub place: Place,
    /// A label that may stand right after the start and is no text: `thought\n` in Gemma 4.
    pub label: &'static str,
    /// What a reply without any marker is, when its prompt is not known.
    pub unmarked: Unmarked,
    /// What a call's marker, or the answer's own, means before the channel has ended.
    pub calls_inside: CallsInside,
    /// What an end marker means in the answer.
    pub stray_end: StrayEnd,
    /// What is taken off the beginning of the channel's text.
    pub trim_start: Trim,
    /// What is taken off its end.
    pub trim_end: Trim,
    /// What is taken off the beginning of the answer after it.
    pub trim_after: Trim,
}

impl ChannelSyntax {
    /// Reasoning of the most frequent behaviour: opened by its marker or by the prompt, line breaks at the borders are layout.
    pub const fn new(tags: Tags) -> Self {
        Self {
            name: REASONING,
            tags,
            start_is_text: false,
            place: Place::Apart,
            label: "",
            unmarked: Unmarked::Answer,
            calls_inside: CallsInside::Text,
            stray_end: StrayEnd::EndsChannel,
            trim_start: Trim::LineBreaks,
            trim_end: Trim::LineBreaks,
            trim_after: Trim::LineBreaks,
        }
    }

    /// Reasoning that is kept to the letter, and so is the answer after it.
    pub const fn untrimmed(tags: Tags) -> Self {
        let (trim_start, trim_end, trim_after) = (Trim::Nothing, Trim::Nothing, Trim::Nothing);
        Self { trim_start, trim_end, trim_after, ..Self::new(tags) }
    }
}

/// Where the text of a channel goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Apart from the answer.
    Apart,
    /// Into the answer, markers included.
    InAnswer,
}

/// What a reply without any marker is, when its prompt is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmarked {
    /// The answer.
    Answer,
    /// Text of the channel: all templates of the family open it.
    Channel,
}

/// What a call's marker, or the answer's own, means before the channel has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallsInside {
    /// It is text of the channel.
    Text,
    /// At the very start of a channel that the prompt opened it ends the channel: the model skipped it. Later it is text.
    AtStart,
    /// It ends the channel.
    End,
}

/// What an end marker means in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StrayEnd {
    /// It is text.
    Text,
    /// It is text. But where the prompt is not known it tells, as the first marker of a reply, that the prompt opened
    /// the channel: the reply is held back until its first marker comes.
    EndsChannel,
    /// At the start of the reply it is dropped, later it is text.
    DroppedAtStart,
    /// It is dropped.
    Dropped,
}
