use burn::tensor::Tensor;

use crate::Result;
use crate::weights::{Param, WeightLoader};

/// RMS norm with a weight.
///
/// # Source
/// Root Mean Square Layer Normalization, arXiv 1910.07467.
pub(crate) struct RmsNorm {
    weight: Tensor<1>,
    eps: f32,
}

impl RmsNorm {
    pub(crate) fn load(loader: &mut WeightLoader<'_>, param: Param, len: usize, eps: f32) -> Result<Self> {
        Ok(Self { weight: loader.vector(param, len)?, eps })
    }

    pub(crate) fn weight(&self) -> Tensor<1> {
        self.weight.clone()
    }

    pub(crate) fn eps(&self) -> f32 {
        self.eps
    }

    /// Norms each row of `[rows, len]`.
    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        lm_kernels::rms_norm(x, self.weight.clone(), self.eps)
    }

    /// Norms each head of `[rows, heads, head_dim]`.
    pub(crate) fn forward_heads(&self, x: Tensor<3>) -> Tensor<3> {
        let [rows, heads, head_dim] = x.dims();
        let x = self.forward(x.reshape([rows * heads, head_dim])); // [rows * heads, head_dim]
        x.reshape([rows, heads, head_dim])
    }
}
