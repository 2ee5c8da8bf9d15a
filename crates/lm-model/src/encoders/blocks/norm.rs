use burn::tensor::Tensor;

use super::{RmsNorm, TensorReader};
use crate::error::Result;

/// LayerNorm with a weight and a bias.
///
/// # Source
/// Layer Normalization, arXiv 1607.06450.
pub(crate) struct LayerNorm {
    weight: Tensor<1>,
    bias: Tensor<1>,
    eps: f32,
}

impl LayerNorm {
    /// Loads the module `name` over rows of `len`.
    pub(crate) fn load(tensors: &mut TensorReader<'_>, name: &str, len: usize, eps: f32) -> Result<Self> {
        let weight = tensors.vector(&format!("{name}.weight"), len)?;
        let bias = tensors.vector(&format!("{name}.bias"), len)?;
        Ok(Self { weight, bias, eps })
    }

    /// Loads a norm without a bias.
    pub(crate) fn unbiased(tensors: &mut TensorReader<'_>, name: &str, len: usize, eps: f32) -> Result<Self> {
        let weight = tensors.vector(&format!("{name}.weight"), len)?;
        let bias = Tensor::zeros([len], tensors.burn_device());
        Ok(Self { weight, bias, eps })
    }

    /// Norms each row of `[rows, len]`.
    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        lm_kernels::layer_norm(x, self.weight.clone(), self.bias.clone(), self.eps)
    }
}

impl RmsNorm {
    /// Loads the weight of the module `name` over rows of `len`.
    pub(crate) fn load(tensors: &mut TensorReader<'_>, name: &str, len: usize, eps: f32) -> Result<Self> {
        Ok(Self { weight: tensors.vector(&format!("{name}.weight"), len)?, eps })
    }
}
