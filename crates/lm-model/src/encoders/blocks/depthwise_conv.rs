use burn::tensor::Tensor;
use lm_kernels::from_host;

use super::{TensorReader, with_zeros};
use crate::error::Result;

/// Convolution over rows with a separate kernel per channel; rows beyond the ends are zeros.
pub(crate) struct DepthwiseConv {
    /// `[kernel, channels]`.
    weight: Tensor<2>,
    /// Zeros before the first row; the number of rows stays the same.
    before: usize,
}

impl DepthwiseConv {
    /// Loads the weight `[channels, 1, kernel]` of the module `name`; row `i` of the output uses the rows
    /// from `i - before` on.
    pub(crate) fn load(
        tensors: &mut TensorReader<'_>,
        name: &str,
        [channels, kernel]: [usize; 2],
        before: usize,
    ) -> Result<Self> {
        let stored = tensors.array(&format!("{name}.weight"), &[channels, 1, kernel])?;
        let weight = from_host(stored, [channels, kernel], tensors.burn_device()).transpose();
        Ok(Self { weight, before })
    }

    /// Applies the convolution along the rows.
    ///
    /// # Shapes
    /// - `x`: `[rows, channels]`; returns the same
    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let ([rows, _], [kernel, _]) = (x.dims(), self.weight.dims());
        let padded = with_zeros(x, [self.before, kernel - 1 - self.before]);
        let tap =
            |index: usize| padded.clone().narrow(0, index, rows) * self.weight.clone().narrow(0, index, 1);
        (1..kernel).fold(tap(0), |sum, index| sum + tap(index))
    }
}
