use burn::tensor::Tensor;

use super::Linear;
use crate::Result;
use crate::spec::DecoderSpec;
use crate::weights::{LayerParam, WeightLoader};

/// SwiGLU feed-forward: `down(silu(gate(x)) * up(x))`.
///
/// # Source
/// GLU Variants Improve Transformer, arXiv 2002.05202.
pub(crate) struct GatedMlp {
    gate: Linear,
    up: Linear,
    down: Linear,
}

impl GatedMlp {
    pub(crate) fn load(loader: &mut WeightLoader<'_>, spec: &DecoderSpec, layer: usize) -> Result<Self> {
        let (hidden, inner, bias) = (spec.hidden_size, spec.intermediate_size, spec.mlp_bias);
        Ok(Self {
            gate: Linear::load(loader, layer, LayerParam::Gate, [hidden, inner], bias)?,
            up: Linear::load(loader, layer, LayerParam::Up, [hidden, inner], bias)?,
            down: Linear::load(loader, layer, LayerParam::Down, [inner, hidden], bias)?,
        })
    }

    /// `[rows, hidden]` to the same.
    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let inner = lm_kernels::swiglu(self.gate.forward(x.clone()), self.up.forward(x)); // [rows, inner]
        self.down.forward(inner) // [rows, hidden]
    }
}
