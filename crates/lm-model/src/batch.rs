//! What one forward pass takes and gives: the ragged batch and its logits.

use std::ops::Range;

use crate::{PageId, TokenId};

/// The sequences of one forward pass, each with its own number of new rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// The sequences, in the order in which [`Logits`] lists them.
    pub sequences: Vec<SequenceInput>,
}

/// The new rows of one sequence and where they go in the cache.
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceInput {
    /// Token ids or ready embedding rows; at least one row.
    pub input: Input,
    /// Slots that the cache already holds; the new rows go to `cached_len..`.
    pub cached_len: usize,
    /// Absolute RoPE position of each new row, zero-based; usually `cached_len..`.
    pub positions: Vec<u32>,
    /// Tokens that the sequence will have once all that is known of it has run: the whole prompt, where these rows are a piece of
    /// it. RoPE of a kind that depends on a sequence's length goes by it; at least the slots after these rows.
    pub planned_len: usize,
    /// For each group of the cache ([`crate::CacheLayout::groups`]) the pages that hold slots `0..cached_len + rows`, in
    /// order. [`crate::NO_PAGE`] may stand where the group neither needs nor writes the page ([`crate::Keeps`]).
    pub block_tables: Vec<Vec<PageId>>,
    /// Adapter to run with; `None` is the model as it is.
    pub adapter: Option<AdapterId>,
    /// Row ranges with an attention kind of their own; rows in no span are causal.
    pub spans: Vec<AttentionSpan>,
    /// The rows whose logits are wanted.
    pub logits: LogitRows,
}

impl SequenceInput {
    /// A causal sequence of `ids` whose positions follow the cache and whose last row's logits are wanted, for a cache of one
    /// group.
    pub fn ids(ids: impl Into<Vec<TokenId>>, cached_len: usize, block_table: impl Into<Vec<PageId>>) -> Self {
        Self::new(Input::Ids(ids.into()), cached_len, block_table.into())
    }

    /// Like [`SequenceInput::ids`], with embedding rows in place of ids.
    pub fn embeddings(rows: Embeddings, cached_len: usize, block_table: impl Into<Vec<PageId>>) -> Self {
        Self::new(Input::Embeddings(rows), cached_len, block_table.into())
    }

    fn new(input: Input, cached_len: usize, block_table: Vec<PageId>) -> Self {
        let planned_len = cached_len.saturating_add(input.rows());
        Self {
            positions: (cached_len..planned_len).map(|p| p as u32).collect(),
            input,
            cached_len,
            planned_len,
            block_tables: vec![block_table],
            adapter: None,
            spans: Vec::new(),
            logits: LogitRows::Last,
        }
    }

    /// Number of new rows.
    pub fn rows(&self) -> usize {
        self.input.rows()
    }
}

/// What the new rows of a sequence are made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Token ids, looked up in the embedding.
    Ids(Vec<TokenId>),
    /// Embedding rows, as an image or audio encoder makes them.
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
    /// Number of whole rows; 0 when `hidden_size` is 0.
    pub fn rows(&self) -> usize {
        self.values.len().checked_div(self.hidden_size).unwrap_or(0)
    }
}

/// Names an adapter (LoRA) that a model has loaded: its place in [`crate::LoadOptions::adapters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AdapterId(pub u32);

/// A range of a sequence's new rows that attend in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttentionSpan {
    /// Rows of this call, counted from the sequence's first new row.
    pub rows: Range<usize>,
    /// How they attend.
    pub kind: AttentionKind,
}

/// What a row may see of its own call; every row sees the cache before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AttentionKind {
    /// Itself and the rows before it.
    #[default]
    Causal,
    /// Also the rows after it inside the same span (the rows of one image).
    Bidirectional,
}

/// Which rows of a sequence's call get logits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogitRows {
    /// None: the rows only fill the cache.
    None,
    /// The last row.
    #[default]
    Last,
    /// Every row.
    All,
    /// These rows, counted from the sequence's first new row, in this order.
    Rows(Vec<usize>),
}

impl LogitRows {
    /// The wanted rows of a call with `rows` rows, in the order of the answer.
    pub fn indices(&self, rows: usize) -> Vec<usize> {
        match self {
            Self::None => Vec::new(),
            Self::Last => rows.checked_sub(1).into_iter().collect(),
            Self::All => (0..rows).collect(),
            Self::Rows(rows) => rows.clone(),
        }
    }
}

/// Logits of the rows that were asked for, on the host in f32.
#[derive(Clone, Debug, PartialEq)]
pub struct Logits {
    values: Vec<f32>,
    width: usize,
    /// First row of each sequence, and the number of rows as the last entry.
    starts: Vec<usize>,
}

impl Logits {
    /// Wraps `values`, `[rows, width]` with the rows of all sequences one after another.
    ///
    /// # Panics
    /// When `values` is not `width` times the sum of `rows_per_sequence`.
    pub fn new(values: Vec<f32>, width: usize, rows_per_sequence: impl IntoIterator<Item = usize>) -> Self {
        let mut starts = vec![0];
        let mut end = 0;
        for rows in rows_per_sequence {
            end += rows;
            starts.push(end);
        }
        assert_eq!(values.len(), end * width, "logits: {end} rows of width {width}");
        Self { values, width, starts }
    }

    /// The logits of sequence `index` of the batch.
    ///
    /// # Panics
    /// When the batch had no such sequence.
    pub fn sequence(&self, index: usize) -> SequenceLogits<'_> {
        let (start, end) = (self.starts[index], self.starts[index + 1]);
        SequenceLogits { values: &self.values[start * self.width..end * self.width], width: self.width }
    }

    /// Number of sequences, those without wanted rows included.
    pub fn num_sequences(&self) -> usize {
        self.starts.len() - 1
    }

    /// Width of a row: the model's `logits_width`.
    pub fn width(&self) -> usize {
        self.width
    }
}

/// The logits of one sequence of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SequenceLogits<'a> {
    values: &'a [f32],
    width: usize,
}

impl<'a> SequenceLogits<'a> {
    /// Row `index` in the order in which rows were asked for.
    ///
    /// # Panics
    /// When fewer rows were asked for.
    pub fn row(&self, index: usize) -> &'a [f32] {
        &self.values[index * self.width..(index + 1) * self.width]
    }

    /// The rows in the order in which they were asked for.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &'a [f32]> + use<'a> {
        self.values.chunks_exact(self.width)
    }

    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.values.len().checked_div(self.width).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_ids_follow_the_cache() {
        let input = SequenceInput::ids([7, 8, 9], 5, [0]);
        assert_eq!(input.positions, [5, 6, 7]);
        assert_eq!(input.logits, LogitRows::Last);
    }

    #[test]
    fn logits_are_split_by_sequence() {
        let logits = Logits::new((0..8).map(|v| v as f32).collect(), 2, [1, 0, 3]);
        assert_eq!(logits.num_sequences(), 3);
        assert_eq!(logits.sequence(0).row(0), [0., 1.]);
        assert_eq!(logits.sequence(1).num_rows(), 0);
        assert_eq!(logits.sequence(2).rows().last(), Some(&[6., 7.][..]));
    }

    #[test]
    fn logit_rows_name_rows_of_the_call() {
        assert_eq!(LogitRows::Last.indices(3), [2]);
        assert_eq!(LogitRows::Last.indices(0), [0; 0]);
        assert_eq!(LogitRows::All.indices(3), [0, 1, 2]);
        assert_eq!(LogitRows::Rows(vec![2, 0]).indices(3), [2, 0]);
    }
}
