//! Builder of texts.

use std::ops::Range;

use super::{Data, Text};
use crate::budget::{Budget, RANGE_BYTES, TEXT_BYTES};
use crate::error::BoxedResult as Result;
use crate::origin::Origin;

/// A text under construction. Each segment is counted before it is copied.
#[derive(Debug)]
pub(crate) struct TextWriter<'a> {
    budget: &'a Budget,
    data: Data,
}

impl<'a> TextWriter<'a> {
    pub(crate) fn new(budget: &'a Budget) -> Self {
        Self { budget, data: Data::default() }
    }

    pub(crate) fn budget(&self) -> &'a Budget {
        self.budget
    }

    /// Bytes written so far.
    pub(crate) fn len(&self) -> usize {
        self.data.string.len()
    }

    /// Writes text of one origin.
    pub(crate) fn push(&mut self, text: &str, origin: Origin) -> Result<()> {
        self.count(text.len(), origin)?;
        self.copy(text, origin);
        Ok(())
    }

    /// Counts the memory of `added` bytes, plus that of the text itself for the first ones.
    fn count(&self, added: usize, origin: Origin) -> Result<()> {
        if added == 0 {
            return Ok(());
        }
        let head = if self.len() == 0 { TEXT_BYTES } else { 0 };
        let range = if origin == Origin::Content { RANGE_BYTES } else { 0 };
        self.budget.text(added.saturating_add(head + range), self.len().saturating_add(added))
    }

    /// Writes text that is counted already.
    fn copy(&mut self, text: &str, origin: Origin) {
        let start = self.len();
        let end = start + text.len();
        self.data.string.push_str(text);
        if origin == Origin::Content && start < end {
            match self.data.content.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => self.data.content.push(start..end),
            }
        }
    }

    /// Writes template text.
    pub(crate) fn template(&mut self, text: &str) -> Result<()> {
        self.push(text, Origin::Template)
    }

    /// Writes a text with its origins.
    pub(crate) fn text(&mut self, text: &Text) -> Result<()> {
        self.slice(text, 0..text.len())
    }

    /// Writes a byte range of a text with its origins.
    pub(crate) fn slice(&mut self, text: &Text, range: Range<usize>) -> Result<()> {
        text.segments_in(range).try_for_each(|(origin, segment)| self.push(segment, origin))
    }

    /// Writes a text `count` times.
    pub(crate) fn repeat(&mut self, text: &Text, count: usize) -> Result<()> {
        let mut segments = text.segments();
        match (segments.next(), segments.next()) {
            (None, _) => Ok(()),
            (Some((origin, segment)), None) => {
                let added = segment.len().saturating_mul(count);
                self.count(added, origin)?;
                (0..count).for_each(|_| self.copy(segment, origin));
                Ok(())
            }
            _ => (0..count).try_for_each(|_| self.budget.step().and_then(|()| self.text(text))),
        }
    }

    /// Returns the text.
    pub(crate) fn finish(self) -> Text {
        Text { data: std::sync::Arc::new(self.data), markup: false }
    }
}
