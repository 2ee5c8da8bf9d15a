use burn::tensor::Tensor;
use lm_kernels::{Activation, Weight};

use super::activated;

/// `x · Wᵀ`, plus a bias where there is one.
pub(crate) struct Linear {
    pub(crate) weight: Weight,
    pub(crate) bias: Option<Tensor<1>>,
}

impl Linear {
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
