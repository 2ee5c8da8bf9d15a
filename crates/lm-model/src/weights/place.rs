//! Where the rows of a parameter are in a checkpoint.

use std::ops::Range;

/// Where a parameter is in a checkpoint: a whole tensor mostly, otherwise rows of one or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pieces: Vec<PlacePiece>,
}

/// Rows of one tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlacePiece {
    /// Name of the tensor.
    pub(crate) tensor: String,
    /// The rows; `None` for all of them.
    pub(crate) rows: Option<RowRange>,
}

impl PlacePiece {
    /// The same rows of another tensor.
    pub(crate) fn in_tensor(self, tensor: String) -> Place {
        Place { pieces: vec![Self { tensor, ..self }] }
    }
}

/// Some rows of a tensor, at even steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowRange {
    /// The first row.
    pub(crate) first: usize,
    /// From one row to the next: 1 for rows that follow each other.
    pub(crate) step: usize,
    /// How many rows.
    pub(crate) count: usize,
    /// How many rows the tensor has, these and the others.
    pub(crate) of: usize,
}

impl Place {
    /// All rows of a tensor.
    pub(crate) fn whole(tensor: impl Into<String>) -> Self {
        Self::stacked([tensor.into()])
    }

    /// All rows of several tensors, one tensor after another: experts.
    pub(crate) fn stacked(tensors: impl IntoIterator<Item = String>) -> Self {
        Self { pieces: tensors.into_iter().map(|tensor| PlacePiece { tensor, rows: None }).collect() }
    }

    /// Rows that follow each other in a tensor that has `of`: a part of a fused projection.
    pub(crate) fn part(tensor: impl Into<String>, rows: Range<usize>, of: usize) -> Self {
        Self::piece(tensor, RowRange { first: rows.start, step: 1, count: rows.len(), of })
    }

    #[allow(dead_code, reason = "the architectures that need parts of tensors follow")]
    /// One of `step` kinds of rows that take turns in a tensor that has `of`.
    pub(crate) fn every(tensor: impl Into<String>, step: usize, first: usize, of: usize) -> Self {
        let count = of.saturating_sub(first).div_ceil(step);
        Self::piece(tensor, RowRange { first, step, count, of })
    }

    fn piece(tensor: impl Into<String>, rows: RowRange) -> Self {
        Self { pieces: vec![PlacePiece { tensor: tensor.into(), rows: Some(rows) }] }
    }

    /// The pieces, in the order of the parameter's rows.
    pub(crate) fn pieces(&self) -> &[PlacePiece] {
        &self.pieces
    }

    /// The first tensor, as errors about the parameter call it.
    pub(crate) fn name(&self) -> &str {
        self.pieces.first().map_or("", |piece| &piece.tensor)
    }
}
