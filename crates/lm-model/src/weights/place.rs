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
    pub(crate) rows: PieceRows,
}

/// Which rows of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceRows {
    All,
    Range(RowRange),
    Columns(ColumnRange),
}

/// Some columns of each of several matrices that are stored one after another: rows of their transposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnRange {
    /// How many matrices.
    pub(crate) matrices: usize,
    /// Rows of each matrix, which are the columns of the parameter.
    pub(crate) inputs: usize,
    /// The columns.
    pub(crate) columns: RowRange,
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

impl RowRange {
    fn every(step: usize, first: usize, of: usize) -> Self {
        Self { first, step, count: of.saturating_sub(first).div_ceil(step), of }
    }
}

impl Place {
    /// All rows of a tensor.
    pub(crate) fn whole(tensor: impl Into<String>) -> Self {
        Self::stacked([tensor.into()])
    }

    /// All rows of several tensors, one tensor after another: experts.
    pub(crate) fn stacked(tensors: impl IntoIterator<Item = String>) -> Self {
        Self {
            pieces: tensors.into_iter().map(|tensor| PlacePiece { tensor, rows: PieceRows::All }).collect(),
        }
    }

    /// Rows that follow each other in a tensor that has `of`: a part of a fused projection.
    pub(crate) fn part(tensor: impl Into<String>, rows: Range<usize>, of: usize) -> Self {
        Self::piece(tensor, PieceRows::Range(RowRange { first: rows.start, step: 1, count: rows.len(), of }))
    }

    /// Several parts of a tensor that has `of` rows, one after another.
    pub(crate) fn parts(tensor: &str, parts: impl IntoIterator<Item = Range<usize>>, of: usize) -> Self {
        Self { pieces: parts.into_iter().flat_map(|rows| Self::part(tensor, rows, of).pieces).collect() }
    }

    /// One of `step` kinds of rows that take turns in a tensor that has `of`.
    pub(crate) fn every(tensor: impl Into<String>, step: usize, first: usize, of: usize) -> Self {
        Self::piece(tensor, PieceRows::Range(RowRange::every(step, first, of)))
    }

    /// One of `step` kinds of columns that take turns in each of several matrices `[inputs, of]`, as rows.
    pub(crate) fn columns(
        tensor: impl Into<String>,
        [matrices, inputs, of]: [usize; 3],
        step: usize,
        first: usize,
    ) -> Self {
        let columns = RowRange::every(step, first, of);
        Self::piece(tensor, PieceRows::Columns(ColumnRange { matrices, inputs, columns }))
    }

    fn piece(tensor: impl Into<String>, rows: PieceRows) -> Self {
        Self { pieces: vec![PlacePiece { tensor: tensor.into(), rows }] }
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
