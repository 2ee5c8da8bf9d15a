use burn::tensor::Tensor;

use super::{Bias, Linear, TensorReader};
use crate::error::Result;

/// Multi-head attention of patches to all patches of their segment, usually a whole image.
pub(crate) struct PatchAttention {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    num_heads: usize,
}

impl PatchAttention {
    /// Loads the four projections of the module `name`, with biases.
    pub(crate) fn load(
        tensors: &mut TensorReader<'_>,
        name: &str,
        hidden: usize,
        num_heads: usize,
    ) -> Result<Self> {
        let mut load =
            |part: &str| Linear::load(tensors, &format!("{name}.{part}"), [hidden, hidden], Bias::Present);
        let (query, key, value) = (load("q_proj")?, load("k_proj")?, load("v_proj")?);
        Ok(Self { query, key, value, output: load("out_proj")?, num_heads })
    }

    /// Returns `residual`, `[rows, hidden]`, plus the attention of `x`, the rows of images of `lengths`
    /// patches one after another.
    pub(crate) fn add_to(&self, residual: Tensor<2>, x: Tensor<2>, lengths: &[usize]) -> Tensor<2> {
        let [rows, hidden] = x.dims();
        let head_dim = hidden / self.num_heads;
        let heads = |linear: &Linear| linear.forward(x.clone()).reshape([rows, self.num_heads, head_dim]);
        let (q, k, v) = (heads(&self.query), heads(&self.key), heads(&self.value));
        let scale = (head_dim as f32).sqrt().recip();
        let attended = lm_kernels::segment_attention(q, k, v, lengths, scale, None);
        self.output.add_to(residual, attended.reshape([rows, hidden]))
    }
}
