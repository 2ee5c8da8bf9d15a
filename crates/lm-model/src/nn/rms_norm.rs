use burn::tensor::{Device as BurnDevice, Tensor};

use super::norm::in_parts;

/// RMS norm with a weight.
///
/// # Source
/// Root Mean Square Layer Normalization, arXiv 1910.07467.
#[derive(Clone)]
pub(crate) struct RmsNorm {
    pub(crate) weight: Tensor<1>,
    pub(crate) eps: f32,
}

impl RmsNorm {
    /// Norm without a weight.
    pub(crate) fn unweighted(device: &BurnDevice, len: usize, eps: f32) -> Self {
        Self { weight: Tensor::ones([len], device), eps }
    }

    /// Returns the norm for a file that stores one less than the weight.
    pub(crate) fn plus_one(self) -> Self {
        Self { weight: self.weight + 1.0, ..self }
    }

    /// Returns the norm with its output multiplied by `factor`.
    pub(crate) fn times(self, factor: f32) -> Self {
        Self { weight: self.weight * factor, ..self }
    }

    /// Norms each row of `[rows, len]`.
    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        lm_kernels::rms_norm(x, self.weight.clone(), self.eps)
    }

    /// Norms parts of each row, each as long as the weight: heads or the whole row of
    /// `[rows, heads, head_dim]`.
    pub(crate) fn forward_parts(&self, x: Tensor<3>) -> Tensor<3> {
        in_parts(x, self.weight.dims()[0], |x| self.forward(x))
    }
}
