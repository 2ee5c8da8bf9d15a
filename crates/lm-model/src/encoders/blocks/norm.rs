use burn::tensor::Tensor;

use super::{LayerNorm, RmsNorm, TensorReader};
use crate::error::Result;

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
}

impl RmsNorm {
    /// Loads the weight of the module `name` over rows of `len`.
    pub(crate) fn load(tensors: &mut TensorReader<'_>, name: &str, len: usize, eps: f32) -> Result<Self> {
        Ok(Self { weight: tensors.vector(&format!("{name}.weight"), len)?, eps })
    }
}
