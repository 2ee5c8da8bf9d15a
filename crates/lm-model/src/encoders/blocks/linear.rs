use burn::tensor::Tensor;
use lm_kernels::{Activation, Weight};

use super::{Bias, Linear, TensorReader, activated};
use crate::error::Result;

impl Linear {
    /// Loads the module `name` with its `weight` and `bias`, from `inputs` to `outputs`.
    pub(crate) fn load(
        tensors: &mut TensorReader<'_>,
        name: &str,
        [inputs, outputs]: [usize; 2],
        bias: Bias,
    ) -> Result<Self> {
        let weight = tensors.matrix(&format!("{name}.weight"), [outputs, inputs])?;
        let bias = bias.if_present(|| tensors.vector(&format!("{name}.bias"), outputs))?;
        Ok(Self { weight, bias })
    }

    /// A projection without a bias.
    pub(crate) fn of_weight(weight: Weight) -> Self {
        Self { weight, bias: None }
    }

    /// The activation of [`Linear::forward`].
    pub(crate) fn activated(&self, x: Tensor<2>, activation: Activation) -> Tensor<2> {
        match &self.bias {
            None => activated(lm_kernels::linear(x, &self.weight), activation),
            Some(bias) => lm_kernels::linear_bias(x, &self.weight, bias.clone(), Some(activation)),
        }
    }
}
