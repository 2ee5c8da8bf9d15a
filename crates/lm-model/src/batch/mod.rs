//! Input and output of a forward pass: the ragged batch and its logits.

mod logits;
mod media_rows;

use std::ops::Range;

use lm_kernels::PageId;
use lm_tokenizer::TokenId;

pub use self::logits::{LogitRows, Logits, SequenceLogits};
pub use self::media_rows::{EncodedMedia, MediaSlice};
use crate::loader::Adapter;

/// The sequences of one forward pass, each with its own number of new rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// The sequences, in the order in which [`Logits`] lists them.
    pub sequences: Vec<SequenceInput>,
}

/// New rows of one sequence and their location in the cache.
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceInput {
    /// Token ids or ready embedding rows; at least one row.
    pub input: Input,
    /// Slots that the cache already holds; the new rows go to `cached_len..`.
    pub cached_len: usize,
    /// Absolute RoPE position of each new row, zero-based; usually `cached_len..`.
    pub positions: Vec<Position>,
    /// Length in tokens of the sequence once all its known tokens have run: the whole prompt, if these rows
    /// are a chunk of it. RoPE that depends on the sequence length uses it. Rows past it are draft tokens;
    /// each one ends a sequence of its own length.
    pub final_len: usize,
    /// Block table for each cache group ([`crate::CacheLayout::groups`]): the pages that hold slots
    /// `0..cached_len + rows`, in order. An entry may be [`crate::NO_PAGE`] where the group neither needs nor
    /// writes the page ([`crate::Retention`]).
    pub block_tables: Vec<Vec<PageId>>,
    /// Adapter to apply; `None` runs the base model.
    pub adapter: Option<Adapter>,
    /// Row ranges with their own attention kind; all other rows are causal.
    pub spans: Vec<AttentionSpan>,
    /// Row where the second text of a pair starts, for encoders with token types; `None` for a single text.
    pub second_text: Option<usize>,
    /// Rows of images and audio, which replace the embeddings of the rows' ids: those ids are the model's
    /// placeholder for such rows.
    pub media: Vec<MediaSlice>,
    /// Rows whose logits are returned.
    pub logits: LogitRows,
}

impl SequenceInput {
    /// Creates a causal sequence of `ids` for a cache of one group; its positions follow the cached slots and
    /// the last row's logits are returned.
    pub fn ids(ids: impl Into<Vec<TokenId>>, cached_len: usize, block_table: impl Into<Vec<PageId>>) -> Self {
        Self::new(Input::Ids(ids.into()), cached_len, block_table.into())
    }

    /// Like [`SequenceInput::ids`], with embedding rows in place of ids.
    pub fn embeddings(rows: Embeddings, cached_len: usize, block_table: impl Into<Vec<PageId>>) -> Self {
        Self::new(Input::Embeddings(rows), cached_len, block_table.into())
    }

    fn new(input: Input, cached_len: usize, block_table: Vec<PageId>) -> Self {
        let final_len = cached_len.saturating_add(input.rows());
        Self {
            positions: (cached_len..final_len).map(|p| Position::from(p as u32)).collect(),
            input,
            cached_len,
            final_len,
            block_tables: vec![block_table],
            adapter: None,
            spans: Vec::new(),
            second_text: None,
            media: Vec::new(),
            logits: LogitRows::Last,
        }
    }

    /// Number of new rows.
    pub fn rows(&self) -> usize {
        self.input.rows()
    }
}

/// RoPE position of a row. Text has the same number three times; models without M-RoPE use `temporal` only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Position {
    /// Position in the sequence; for a row of an image, the position of the image's start.
    pub temporal: u32,
    /// Row in an image, counted from the position of the image's start.
    pub height: u32,
    /// Column in an image, counted from the position of the image's start.
    pub width: u32,
}

impl Position {
    /// The largest of the three numbers.
    pub fn max(self) -> u32 {
        self.temporal.max(self.height).max(self.width)
    }
}

impl From<u32> for Position {
    fn from(position: u32) -> Self {
        Self { temporal: position, height: position, width: position }
    }
}

/// New rows of a sequence: token ids or embeddings.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Token ids, looked up in the embedding.
    Ids(Vec<TokenId>),
    /// Embedding rows. For rows of images among token ids see [`SequenceInput::media`].
    Embeddings(Embeddings),
}

impl Input {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Ids(ids) => ids.len(),
            Self::Embeddings(embeddings) => embeddings.rows(),
        }
    }
}

/// Embedding rows on the host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Embeddings {
    /// `[rows, hidden_size]`, row-major.
    pub values: Vec<f32>,
    /// Width of a row.
    pub hidden_size: usize,
}

impl Embeddings {
    /// Values of these rows.
    ///
    /// # Panics
    /// When there are fewer rows.
    pub fn slice(&self, rows: Range<usize>) -> &[f32] {
        &self.values[rows.start * self.hidden_size..rows.end * self.hidden_size]
    }

    /// Number of whole rows; 0 when `hidden_size` is 0.
    pub fn rows(&self) -> usize {
        self.values.len().checked_div(self.hidden_size).unwrap_or(0)
    }
}

/// Range of a sequence's new rows that share one attention kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttentionSpan {
    /// Rows of this call, counted from the sequence's first new row.
    pub rows: Range<usize>,
    /// Attention kind of these rows.
    pub kind: AttentionKind,
}

/// Attention mask of a row within its own call; every row attends to the cached slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AttentionKind {
    /// The row itself and the rows before it.
    #[default]
    Causal,
    /// The rows after it inside the same span as well (the rows of one image).
    Bidirectional,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_ids_follow_the_cache() {
        let input = SequenceInput::ids([7, 8, 9], 5, [0]);
        assert_eq!(input.positions, [5, 6, 7].map(Position::from));
        assert_eq!(input.logits, LogitRows::Last);
    }
}
