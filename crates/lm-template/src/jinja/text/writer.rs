//! Builder of texts.

use std::ops::Range;

use super::{Data, Text};
use crate::jinja::error::Result;
use crate::jinja::limits::{Limits, RANGE_BYTES, TEXT_BYTES};
use crate::prompt::SegmentKind;

/// A text under construction. Each piece is counted before it is copied.
#[derive(Debug)]
pub(crate) struct TextWriter<'a> {
    limits: &'a Limits,
    data: Data,
}

impl<'a> TextWriter<'a> {
    pub(crate) fn new(limits: &'a Limits) -> Self {
        Self { limits, data: Data::default() }
    }

    pub(crate) fn limits(&self) -> &'a Limits {
        self.limits
    }

    /// Bytes written so far.
    pub(crate) fn len(&self) -> usize {
        self.data.string.len()
    }

    /// Writes text of one origin.
    pub(crate) fn push(&mut self, text: &str, kind: SegmentKind) -> Result<()> {
        self.count(text.len(), kind)?;
        self.copy(text, kind);
        Ok(())
    }

    /// Counts the memory of `added` bytes, plus that of the text itself for the first ones.
    fn count(&self, added: usize, kind: SegmentKind) -> Result<()> {
        if added == 0 {
            return Ok(());
        }
        let head = if self.len() == 0 { TEXT_BYTES } else { 0 };
        let range = if kind == SegmentKind::Content { RANGE_BYTES } else { 0 };
        self.limits.text(added.saturating_add(head + range), self.len().saturating_add(added))
    }

    /// Writes text that is counted already.
    fn copy(&mut self, text: &str, kind: SegmentKind) {
        let start = self.len();
        let end = start + text.len();
        self.data.string.push_str(text);
        if kind == SegmentKind::Content && start < end {
            match self.data.content.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => self.data.content.push(start..end),
            }
        }
    }

    /// Writes template text.
    pub(crate) fn template(&mut self, text: &str) -> Result<()> {
        self.push(text, SegmentKind::Template)
    }

    /// Writes a text with its origins.
    pub(crate) fn text(&mut self, text: &Text) -> Result<()> {
        self.slice(text, 0..text.len())
    }

    /// Writes a byte range of a text with its origins.
    pub(crate) fn slice(&mut self, text: &Text, range: Range<usize>) -> Result<()> {
        text.pieces(range).try_for_each(|(kind, piece)| self.push(piece, kind))
    }

    /// Writes a text `count` times.
    pub(crate) fn repeat(&mut self, text: &Text, count: usize) -> Result<()> {
        let mut pieces = text.all_pieces();
        match (pieces.next(), pieces.next()) {
            (None, _) => Ok(()),
            (Some((kind, piece)), None) => {
                let added = piece.len().saturating_mul(count);
                self.count(added, kind)?;
                (0..count).for_each(|_| self.copy(piece, kind));
                Ok(())
            }
            _ => (0..count).try_for_each(|_| self.limits.step().and_then(|()| self.text(text))),
        }
    }

    /// Returns the text.
    pub(crate) fn finish(self) -> Text {
        Text { data: std::sync::Arc::new(self.data), markup: false }
    }
}
