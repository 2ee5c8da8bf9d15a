use burn::tensor::Tensor;
use lm_kernels::{Activation, Weight};

use super::{TowerTensors, activated};
use crate::error::Result;
pub(crate) use crate::spec::Bias;

/// `x · Wᵀ`, plus a bias where the tower has one.
pub(crate) struct Linear {
    weight: Weight,
    bias: Option<Tensor<1>>,
}

impl Linear {
    /// Loads the module `name` with its `weight` and `bias`, from `inputs` to `outputs`.
    pub(crate) fn load(
        tensors: &mut TowerTensors<'_>,
        name: &str,
        [inputs, outputs]: [usize; 2],
        bias: Bias,
    ) -> Result<Self> {
        let weight = tensors.matrix(&format!("{name}.weight"), [outputs, inputs])?;
        let bias = match bias {
            Bias::Absent => None,
            Bias::Present => Some(tensors.vector(&format!("{name}.bias"), outputs)?),
        };
        Ok(Self { weight, bias })
    }

    /// A projection without a bias.
    pub(crate) fn of_weight(weight: Weight) -> Self {
        Self { weight, bias: None }
    }

    /// `[rows, inputs]` to `[rows, outputs]`.
    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        match &self.bias {
            None => lm_kernels::linear(x, &self.weight),
            Some(bias) => lm_kernels::linear_bias(x, &self.weight, bias.clone(), None),
        }
    }

    /// The activation of [`Linear::forward`].
    pub(crate) fn activated(&self, x: Tensor<2>, activation: Activation) -> Tensor<2> {
        match &self.bias {
            None => activated(lm_kernels::linear(x, &self.weight), activation),
            Some(bias) => lm_kernels::linear_bias(x, &self.weight, bias.clone(), Some(activation)),
        }
    }

    /// Returns `residual`, `[rows, outputs]`, plus the projection of `x`, `[rows, inputs]`.
    pub(crate) fn add_to(&self, residual: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
        lm_kernels::linear_add(x, &self.weight, self.bias.clone(), residual)
    }
}
