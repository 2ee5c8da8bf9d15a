use burn::tensor::Tensor;
use lm_kernels::Activation;

use super::{Linear, RmsNorm};
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

    /// `x`, `[rows, hidden]`, plus what the block makes of it once it is normed.
    pub(crate) fn add_to(&self, x: Tensor<2>, norm: &RmsNorm) -> Tensor<2> {
        let inner = self.inner(x.clone(), norm); // [rows, inner]
        self.down.add_to(x, inner)
    }

    /// `silu(gate(x)) * up(x)` of the normed rows; biases stand between the products and the gate.
    fn inner(&self, x: Tensor<2>, norm: &RmsNorm) -> Tensor<2> {
        if self.gate.has_bias() || self.up.has_bias() {
            let x = norm.forward(x);
            return lm_kernels::glu(self.gate.forward(x.clone()), self.up.forward(x), Activation::Silu);
        }
        let (gate, up) = (self.gate.weight(), self.up.weight());
        lm_kernels::gated(x, norm.weight(), norm.eps(), gate, up, Activation::Silu)
    }
}
