use burn::tensor::Tensor;
use lm_kernels::Activation;

use super::{Bias, LayerNorm, Mlp, PatchAttention, TensorReader};
use crate::error::Result;

/// Pre-norm transformer layer over patches, as in ViT and SigLIP.
pub(crate) struct EncoderLayer {
    attention_norm: LayerNorm,
    attention: PatchAttention,
    mlp_norm: LayerNorm,
    mlp: Mlp,
}

/// Sizes of an [`EncoderLayer`].
#[derive(Clone, Copy)]
pub(crate) struct EncoderSizes {
    pub(crate) hidden: usize,
    pub(crate) intermediate: usize,
    pub(crate) num_heads: usize,
    pub(crate) norm_eps: f32,
    pub(crate) activation: Activation,
}

impl EncoderLayer {
    /// Loads the module `name`.
    pub(crate) fn load(tensors: &mut TensorReader<'_>, name: &str, sizes: EncoderSizes) -> Result<Self> {
        let EncoderSizes { hidden, intermediate, num_heads, norm_eps, activation } = sizes;
        let part = |part: &str| format!("{name}.{part}");
        let names = [&*part("mlp.fc1"), &*part("mlp.fc2")];
        let widths = [hidden, intermediate, hidden];
        Ok(Self {
            attention_norm: LayerNorm::load(tensors, &part("layer_norm1"), hidden, norm_eps)?,
            attention: PatchAttention::load(tensors, &part("self_attn"), hidden, num_heads)?,
            mlp_norm: LayerNorm::load(tensors, &part("layer_norm2"), hidden, norm_eps)?,
            mlp: Mlp::load(tensors, names, widths, Bias::Present, activation)?,
        })
    }

    /// Maps `[rows, hidden]`, images of `lengths` patches one after another, to the same shape.
    pub(crate) fn forward(&self, x: Tensor<2>, lengths: &[usize]) -> Tensor<2> {
        let normed = self.attention_norm.forward(x.clone());
        let x = self.attention.add_to(x, normed, lengths);
        let normed = self.mlp_norm.forward(x.clone());
        self.mlp.add_to(x, normed)
    }
}
