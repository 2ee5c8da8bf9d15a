use burn::tensor::Tensor;

use super::TowerTensors;
use crate::error::Result;

/// RMS norm.
///
/// # Source
/// Root Mean Square Layer Normalization, arXiv 1910.07467.
pub(crate) struct RmsNorm {
    weight: Tensor<1>,
    eps: f32,
}

impl RmsNorm {
    /// Loads the weight of the module `name` over rows of `len`.
    pub(crate) fn load(tensors: &mut TowerTensors<'_>, name: &str, len: usize, eps: f32) -> Result<Self> {
        Ok(Self { weight: tensors.vector(&format!("{name}.weight"), len)?, eps })
    }

    /// Norm without a weight.
    pub(crate) fn unweighted(tensors: &TowerTensors<'_>, len: usize, eps: f32) -> Self {
        Self { weight: Tensor::ones([len], tensors.burn_device()), eps }
    }

    /// Returns the norm for a file that stores one less than the weight.
    pub(crate) fn plus_one(self) -> Self {
        Self { weight: self.weight + 1.0, ..self }
    }

    /// Norms each row of `[rows, len]`.
    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        lm_kernels::rms_norm(x, self.weight.clone(), self.eps)
    }
}
