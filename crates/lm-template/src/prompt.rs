//! A rendered prompt: its text, and the origin of each segment.

use std::ops::Range;

use crate::polyfills::Polyfill;

/// Origin of a segment of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentKind {
    /// The template itself. Special tokens are recognized here.
    Template,
    /// A message, a tool declaration or a document. Special tokens are plain text here.
    Content,
}

/// A piece of a prompt with one origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Origin of the text.
    pub kind: SegmentKind,
    /// The text, never empty.
    pub text: String,
}

/// A rendered prompt in segments, which join to the rendered text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prompt {
    /// Segments in order; neighbours differ in kind.
    pub segments: Vec<Segment>,
    /// Byte ranges of the text that the template marks with `{% generation %}`. Empty for most templates.
    pub generation: Vec<Range<usize>>,
    /// Polyfills applied to the conversation, in order. Empty if [`PromptTemplate`](crate::PromptTemplate) renders it
    /// directly.
    pub polyfills: Vec<Polyfill>,
}

impl Prompt {
    /// The whole text.
    pub fn text(&self) -> String {
        self.segments.iter().map(|segment| segment.text.as_str()).collect()
    }

    /// Appends text, merging it into the last segment if that has the same kind.
    pub(crate) fn push(&mut self, kind: SegmentKind, text: &str) {
        match self.segments.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.kind == kind => last.text.push_str(text),
            _ => self.segments.push(Segment { kind, text: text.to_owned() }),
        }
    }

    /// Appends another prompt.
    pub(crate) fn extend(&mut self, more: &Prompt) {
        let length: usize = self.segments.iter().map(|segment| segment.text.len()).sum();
        more.segments.iter().for_each(|segment| self.push(segment.kind, &segment.text));
        self.generation.extend(more.generation.iter().map(|range| length + range.start..length + range.end));
    }

    /// Truncates the text at byte `end`.
    pub(crate) fn truncate(&mut self, end: usize) {
        let mut left = end;
        self.segments.retain_mut(|segment| {
            segment.text.truncate(left);
            left -= segment.text.len();
            !segment.text.is_empty()
        });
        self.generation.retain(|range| range.start < end);
        self.generation.iter_mut().for_each(|range| range.end = range.end.min(end));
    }
}
