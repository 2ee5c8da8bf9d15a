//! A rendered prompt: its text, and which of it came from where.

use std::ops::Range;

use crate::polyfills::Polyfill;

/// Where a piece of a prompt came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentKind {
    /// The template itself. Special tokens are recognised here.
    Template,
    /// A message, a tool's declaration or a document. Special tokens are plain text here, whoever typed them.
    Content,
}

/// A piece of a prompt from one origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Where the text came from.
    pub kind: SegmentKind,
    /// The text, never empty.
    pub text: String,
}

/// A rendered prompt in segments; joined, they are the rendered text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prompt {
    /// The pieces in order; neighbours differ in kind.
    pub segments: Vec<Segment>,
    /// What the template marks with `{% generation %}`: byte ranges of the text. Empty for most templates.
    pub generation: Vec<Range<usize>>,
    /// What was changed in the conversation because the template lacks it, in the order of the changes. Empty for what
    /// [`PromptTemplate`](crate::PromptTemplate) renders itself.
    pub polyfills: Vec<Polyfill>,
}

impl Prompt {
    /// The whole text.
    pub fn text(&self) -> String {
        self.segments.iter().map(|segment| segment.text.as_str()).collect()
    }

    /// Appends text of one kind, to the last segment when that has the same.
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

    /// Cuts the text off at byte `end`.
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
