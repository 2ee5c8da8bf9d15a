//! Rows with logits, and their logits.

/// Rows of a sequence's call that get logits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogitRows {
    /// No row: the rows only fill the cache.
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
    /// When the index is out of range.
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
    fn logits_are_split_by_sequence() {
        let logits = Logits::new((0..8).map(|v| v as f32).collect(), 2, [1, 0, 3]);
        assert_eq!(logits.num_sequences(), 3);
        assert_eq!(logits.sequence(0).row(0), [0., 1.]);
        assert_eq!(logits.sequence(1).num_rows(), 0);
        assert_eq!(logits.sequence(2).rows().last(), Some(&[6., 7.][..]));
    }

    #[test]
    fn logit_rows_are_rows_of_the_batch() {
        assert_eq!(LogitRows::Last.indices(3), [2]);
        assert_eq!(LogitRows::Last.indices(0), [0; 0]);
        assert_eq!(LogitRows::All.indices(3), [0, 1, 2]);
        assert_eq!(LogitRows::Rows(vec![2, 0]).indices(3), [2, 0]);
    }
}
