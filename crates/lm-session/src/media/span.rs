//! Rows of media in the tokens of a session.

use std::ops::Range;
use std::sync::Arc;

use lm_model::{AttentionKind, MediaPositions, Position};
use lm_tokenizer::TokenId;

use super::Media;

/// Consecutive rows of a media item in the tokens of a session: a whole piece of its layout.
#[derive(Clone, Debug)]
pub(crate) struct MediaSpan {
    /// Place of the first row among the tokens.
    pub start: usize,
    pub media: Arc<Media>,
    /// Rows of the media item.
    pub rows: Range<usize>,
    pub attention: AttentionKind,
    pub positions: MediaPositions,
}

impl MediaSpan {
    /// Place after the last row.
    pub fn end(&self) -> usize {
        self.start + self.rows.len()
    }

    /// Places of the rows among the tokens.
    pub fn places(&self) -> Range<usize> {
        self.start..self.end()
    }

    /// Virtual ids of the rows.
    pub fn ids(&self) -> &[TokenId] {
        &self.media.ids[self.rows.clone()]
    }

    /// Number of positions that the rows take.
    fn advance(&self) -> usize {
        match self.positions {
            MediaPositions::Sequential => self.rows.len(),
            MediaPositions::Grid { rows, columns } => rows.max(columns),
        }
    }

    /// Position of row `index` of the span, whose first has position `first`.
    fn position(&self, first: usize, index: usize) -> Position {
        match self.positions {
            MediaPositions::Sequential => Position::from((first + index) as u32),
            MediaPositions::Grid { columns, .. } => Position {
                temporal: first as u32,
                height: (first + index / columns) as u32,
                width: (first + index % columns) as u32,
            },
        }
    }
}

/// Positions of the tokens at `places` in a sequence with these media.
pub(crate) fn positions(spans: &[MediaSpan], places: Range<usize>) -> Vec<Position> {
    let mut positions = Vec::with_capacity(places.len());
    let mut spans = spans.iter().peekable();
    // Places of earlier media less the positions that they took.
    let mut saved = 0;
    for place in places {
        while let Some(span) = spans.next_if(|span| span.end() <= place) {
            saved += span.rows.len() - span.advance();
        }
        positions.push(match spans.peek() {
            Some(span) if span.start <= place => span.position(span.start - saved, place - span.start),
            _ => Position::from((place - saved) as u32),
        });
    }
    positions
}

/// Largest place ≤ `len` that is not inside a span.
pub(crate) fn whole_spans(spans: &[MediaSpan], len: usize) -> usize {
    let cut = spans.iter().find(|span| span.start < len && len < span.end());
    cut.map_or(len, |span| span.start)
}
