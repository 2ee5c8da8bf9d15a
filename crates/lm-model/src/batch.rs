//! Input and output of a forward pass: the ragged batch and its logits.

use std::ops::Range;

use lm_kernels::PageId;
use lm_tokenizer::TokenId;

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
    pub positions: Vec<u32>,
    /// Length in tokens that the sequence has once everything known of it has run: the whole prompt, where these rows are a chunk
    /// of it. RoPE that depends on the sequence length uses it. Rows past it are draft tokens, each of which ends a sequence of its
    /// own length.
    pub final_len: usize,
    /// Block table for each cache group ([`crate::CacheLayout::groups`]): the pages that hold slots `0..cached_len + rows`, in
    /// order. An entry may be [`crate::NO_PAGE`] where the group neither needs nor writes the page ([`crate::Retention`]).
    pub block_tables: Vec<Vec<PageId>>,
    /// Adapter to apply; `None` runs the base model.
    pub adapter: Option<Adapter>,
    /// Row ranges with their own attention kind; rows in no span are causal.
    pub spans: Vec<AttentionSpan>,
    /// Rows whose logits are returned.
    pub logits: LogitRows,
}

impl SequenceInput {
    /// A causal sequence of `ids` for a cache of one group; its positions follow the cached slots and the last row's logits are
    /// returned.
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
            positions: (cached_len..final_len).map(|p| p as u32).collect(),
            input,
            cached_len,
            final_len,
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

/// New rows of a sequence: token ids or embeddings.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Token ids, looked up in the embedding.
    Ids(Vec<TokenId>),
    /// Embedding rows, as an image or audio encoder produces them.
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
    /// Also the rows after it inside the same span (the rows of one image).
    Bidirectional,
}

/// Rows of a sequence's call that get logits.
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
    /// Returns the indices of the selected rows in a call of `rows` rows, in the order of the result.
    pub fn indices(&self, rows: usize) -> Vec<usize> {
        match self {
            Self::None => Vec::new(),
            Self::Last => rows.checked_sub(1).into_iter().collect(),
            Self::All => (0..rows).collect(),
            Self::Rows(rows) => rows.clone(),
        }
    }
}

/// Logits of the requested rows, on the host in f32.
#[derive(Clone, Debug, PartialEq)]
pub struct Logits {
    values: Vec<f32>,
    width: usize,
    /// First row of each sequence; the last entry is the total number of rows.
    starts: Vec<usize>,
}

impl Logits {
    /// Wraps `values`, `[rows, width]`, the rows of all sequences concatenated.
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

    /// Number of sequences, including those without requested rows.
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
    /// Logits of the `index`-th requested row.
    ///
    /// # Panics
    /// When fewer rows were requested.
    pub fn row(&self, index: usize) -> &'a [f32] {
        &self.values[index * self.width..(index + 1) * self.width]
    }

    /// The requested rows, in the order of the request.
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
