//! A rendered prompt: its text, and the origin of each segment.

use std::ops::Range;

use lm_jinja::Origin;

/// A piece of a prompt with one origin. Special tokens are recognized in template text; in content (messages,
/// tool declarations, documents) they are plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Origin of the text.
    pub origin: Origin,
    /// The text, never empty.
    pub text: String,
}

/// A rendered prompt in segments, which join to the rendered text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prompt {
    /// Segments in order; neighbours differ in origin.
    pub segments: Vec<Segment>,
    /// Byte ranges of the text that the template marks with `{% generation %}`. Empty for most templates.
    pub generation: Vec<Range<usize>>,
}

impl Prompt {
    /// The whole text.
    pub fn text(&self) -> String {
        self.segments.iter().map(|segment| segment.text.as_str()).collect()
    }

    /// Appends text, merging it into the last segment if that has the same origin.
    pub(crate) fn push(&mut self, origin: Origin, text: &str) {
        match self.segments.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.origin == origin => last.text.push_str(text),
            _ => self.segments.push(Segment { origin, text: text.to_owned() }),
        }
    }

    /// Appends another prompt.
    pub(crate) fn extend(&mut self, more: &Prompt) {
        let length: usize = self.segments.iter().map(|segment| segment.text.len()).sum();
        more.segments.iter().for_each(|segment| self.push(segment.origin, &segment.text));
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
