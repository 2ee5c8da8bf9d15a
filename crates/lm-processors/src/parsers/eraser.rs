//! Erasure of texts before parsing, such as citations.

use super::marker_scan::{Scan, scan};
use super::text_buffer::TextBuffer;
use crate::dialect::Tags;

/// Passes text on without the parts in the given tags.
#[derive(Debug)]
pub(crate) struct Eraser {
    openings: Vec<&'static str>,
    tags: &'static [Tags],
    /// End marker of the text being erased.
    until: Option<&'static str>,
    held: TextBuffer,
}

impl Eraser {
    pub(crate) fn new(tags: &'static [Tags]) -> Self {
        let openings = tags.iter().map(|tags| tags.open).collect();
        Self { openings, tags, until: None, held: TextBuffer::default() }
    }

    pub(crate) fn push(&mut self, text: &str, ended: bool, to: &mut TextBuffer) {
        if self.tags.is_empty() {
            return to.push(text);
        }
        self.held.push(text);
        while self.advance(ended, to) {}
    }

    fn advance(&mut self, ended: bool, to: &mut TextBuffer) -> bool {
        let found = match self.until {
            Some(close) => scan(self.held.rest(), &[close], ended),
            None => scan(self.held.rest(), &self.openings, ended),
        };
        let (until, len) = match found {
            Scan::Clear { until } => (until, 0),
            Scan::Found { start, marker } => (start, self.until.unwrap_or(self.openings[marker]).len()),
        };
        let text = self.held.take(until);
        if self.until.is_none() {
            to.push(text);
        }
        let Scan::Found { marker, .. } = found else { return false };
        self.held.take(len);
        self.until = match self.until {
            Some(_) => None,
            None => Some(self.tags[marker].close).filter(|close| !close.is_empty()),
        };
        true
    }
}
