//! Locations of parameters in a checkpoint.

use std::ops::Range;

/// Location of a parameter in a checkpoint: mostly a whole tensor, otherwise rows of one or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TensorLocation {
    slices: Vec<TensorSlice>,
}

/// Rows of one tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TensorSlice {
    /// Name of the tensor.
    pub(crate) tensor: String,
    pub(crate) rows: SliceRows,
}

/// Selection of a tensor's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SliceRows {
    All,
    Range(RowRange),
    Columns(ColumnRange),
}

/// Columns of several concatenated matrices, as rows of their transposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnRange {
    /// Number of matrices.
    pub(crate) matrices: usize,
    /// The first rows of each matrix, which are the columns of the parameter.
    pub(crate) inputs: usize,
    /// Rows of each matrix, selected or not.
    pub(crate) height: usize,
    /// True if the tensor is one matrix `[matrices * height, of]`, and not `[matrices, height, of]`.
    pub(crate) is_flat: bool,
    /// The selected columns.
    pub(crate) columns: RowRange,
}

impl TensorSlice {
    /// Returns the same rows of another tensor.
    pub(crate) fn in_tensor(self, tensor: String) -> TensorLocation {
        TensorLocation { slices: vec![Self { tensor, ..self }] }
    }
}

/// Rows of a tensor at a constant stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowRange {
    /// First row.
    pub(crate) first: usize,
    /// Stride from one row to the next; 1 for contiguous rows.
    pub(crate) step: usize,
    /// Number of rows.
    pub(crate) count: usize,
    /// Number of rows of the tensor, selected or not.
    pub(crate) of: usize,
}

impl RowRange {
    fn strided(step: usize, first: usize, of: usize) -> Self {
        Self { first, step, count: of.saturating_sub(first).div_ceil(step), of }
    }
}

impl TensorLocation {
    /// All rows of a tensor.
    pub(crate) fn whole(tensor: impl Into<String>) -> Self {
        Self::stacked([tensor.into()])
    }

    /// All rows of several tensors, concatenated: experts.
    pub(crate) fn stacked(tensors: impl IntoIterator<Item = String>) -> Self {
        Self {
            slices: tensors.into_iter().map(|tensor| TensorSlice { tensor, rows: SliceRows::All }).collect(),
        }
    }

    /// Contiguous rows of a tensor of `of` rows: a part of a fused projection.
    pub(crate) fn part(tensor: impl Into<String>, rows: Range<usize>, of: usize) -> Self {
        Self::slice(tensor, SliceRows::Range(RowRange { first: rows.start, step: 1, count: rows.len(), of }))
    }

    /// Several parts of a tensor of `of` rows, concatenated.
    pub(crate) fn parts(tensor: &str, parts: impl IntoIterator<Item = Range<usize>>, of: usize) -> Self {
        Self { slices: parts.into_iter().flat_map(|rows| Self::part(tensor, rows, of).slices).collect() }
    }

    /// Every `step`-th row of a tensor of `of` rows, from `first` on: one of several interleaved parameters.
    pub(crate) fn strided(tensor: impl Into<String>, step: usize, first: usize, of: usize) -> Self {
        Self::slice(tensor, SliceRows::Range(RowRange::strided(step, first, of)))
    }

    /// Every `step`-th column of each of several matrices `[inputs, of]`, from `first` on, as rows.
    pub(crate) fn columns(
        tensor: impl Into<String>,
        [matrices, inputs, of]: [usize; 3],
        step: usize,
        first: usize,
    ) -> Self {
        let columns = RowRange::strided(step, first, of);
        Self::slice(
            tensor,
            SliceRows::Columns(ColumnRange { matrices, inputs, height: inputs, is_flat: false, columns }),
        )
    }

    /// Some columns of a matrix `[inputs, of]`, as rows: a projection that is stored transposed, or a part of
    /// one.
    pub(crate) fn transposed(
        tensor: impl Into<String>,
        [inputs, of]: [usize; 2],
        columns: Range<usize>,
    ) -> Self {
        let columns = RowRange { first: columns.start, step: 1, count: columns.len(), of };
        let rows = ColumnRange { matrices: 1, inputs, height: inputs, is_flat: true, columns };
        Self::slice(tensor, SliceRows::Columns(rows))
    }

    /// The rows of several locations, concatenated.
    pub(crate) fn concatenated(parts: impl IntoIterator<Item = Self>) -> Self {
        Self { slices: parts.into_iter().flat_map(|part| part.slices).collect() }
    }

    /// All columns, as rows, of the first `inputs` rows of each matrix `[height, of]` of a tensor that stacks
    /// several of them: `[matrices * height, of]`.
    pub(crate) fn transposed_parts(
        tensor: impl Into<String>,
        [matrices, height, of]: [usize; 3],
        inputs: usize,
    ) -> Self {
        let columns = RowRange::strided(1, 0, of);
        let rows = ColumnRange { matrices, inputs, height, is_flat: true, columns };
        Self::slice(tensor, SliceRows::Columns(rows))
    }

    fn slice(tensor: impl Into<String>, rows: SliceRows) -> Self {
        Self { slices: vec![TensorSlice { tensor: tensor.into(), rows }] }
    }

    /// The slices, in the order of the parameter's rows.
    pub(crate) fn slices(&self) -> &[TensorSlice] {
        &self.slices
    }

    /// Name of the first tensor, used in errors about the parameter.
    pub(crate) fn name(&self) -> &str {
        self.slices.first().map_or("", |slice| &slice.tensor)
    }
}
