//! Low-rank updates of projections.

use std::ops::Range;

use burn::tensor::Tensor;
use lm_kernels::Weight;

use super::Adapter;

/// Low-rank update of one projection by an adapter: `scale · B(A(x))`.
///
/// # Source
/// LoRA, arXiv 2106.09685.
pub(crate) struct LowRank {
    /// `[rank, inputs]`
    a: Weight,
    /// `[outputs, rank]`
    b: Weight,
    scale: f32,
}

/// Rows of a batch that use an adapter, and the adapter.
pub(crate) type AdaptedRows = (Range<usize>, Adapter);

impl LowRank {
    pub(crate) fn new(a: Weight, b: Weight, scale: f32) -> Self {
        Self { a, b, scale }
    }

    /// `[rows, inputs]` to `[rows, outputs]`.
    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        lm_kernels::linear(lm_kernels::linear(x, &self.a), &self.b) * self.scale
    }
}
