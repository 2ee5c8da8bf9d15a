use burn::tensor::{Device as BurnDevice, Tensor};

/// LayerNorm with a weight and a bias.
///
/// # Source
/// Layer Normalization, arXiv 1607.06450.
#[derive(Clone)]
pub(crate) struct LayerNorm {
    pub(crate) weight: Tensor<1>,
    /// Zeros for a norm without a bias.
    pub(crate) bias: Tensor<1>,
    pub(crate) eps: f32,
}

impl LayerNorm {
    /// Norm without a weight and a bias.
    pub(crate) fn unweighted(device: &BurnDevice, len: usize, eps: f32) -> Self {
        Self { weight: Tensor::ones([len], device), bias: Tensor::zeros([len], device), eps }
    }

    /// Norms each row of `[rows, len]`.
    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        lm_kernels::layer_norm(x, self.weight.clone(), self.bias.clone(), self.eps)
    }
}
