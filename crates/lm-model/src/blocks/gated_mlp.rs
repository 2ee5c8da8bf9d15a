use burn::tensor::Tensor;
use lm_kernels::Activation;

use super::{Linear, Pass, Sublayer};
use crate::Result;
use crate::spec::Bias;
use crate::weights::{LayerParam, WeightLoader};

/// Gated feed-forward: `down(activation(gate(x)) * up(x))`.
///
/// # Source
/// GLU Variants Improve Transformer, arXiv 2002.05202.
pub(crate) struct GatedMlp {
    gate: Linear,
    up: Linear,
    down: Linear,
    activation: Activation,
}

impl GatedMlp {
    /// `[hidden, inner]` are the widths outside and inside.
    pub(crate) fn load(
        loader: &mut WeightLoader<'_>,
        layer: usize,
        [hidden, inner]: [usize; 2],
        activation: Activation,
        bias: Bias,
    ) -> Result<Self> {
        Ok(Self {
            gate: Linear::load(loader, layer, LayerParam::Gate, [hidden, inner], bias)?,
            up: Linear::load(loader, layer, LayerParam::Up, [hidden, inner], bias)?,
            down: Linear::load(loader, layer, LayerParam::Down, [inner, hidden], bias)?,
            activation,
        })
    }

    /// `x`, `[rows, hidden]`, plus what the block makes of it.
    pub(crate) fn add_to(&self, x: Tensor<2>, around: &Sublayer, pass: &Pass) -> Tensor<2> {
        let inner = around.input(x.clone()).gated(&self.gate, &self.up, self.activation, pass); // [rows, inner]
        around.add_projected(x, inner, &self.down, pass)
    }
}
