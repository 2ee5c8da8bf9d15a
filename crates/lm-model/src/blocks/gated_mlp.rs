use burn::tensor::Tensor;
use burn::tensor::activation::relu;
use lm_kernels::Activation;

use super::{Linear, Pass, Sublayer};
use crate::Result;
use crate::spec::{Bias, Sparsity};
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
    sparsity: Option<Sparsity>,
}

impl GatedMlp {
    /// `[hidden, inner]` are the widths outside and inside.
    pub(crate) fn load(
        loader: &mut WeightLoader<'_>,
        layer: usize,
        [hidden, inner]: [usize; 2],
        activation: Activation,
        bias: Bias,
        sparsity: Option<Sparsity>,
    ) -> Result<Self> {
        Ok(Self {
            gate: Linear::load(loader, layer, LayerParam::Gate, [hidden, inner], bias)?,
            up: Linear::load(loader, layer, LayerParam::Up, [hidden, inner], bias)?,
            down: Linear::load(loader, layer, LayerParam::Down, [inner, hidden], bias)?,
            activation,
            sparsity,
        })
    }

    /// `x`, `[rows, hidden]`, plus what the block makes of it.
    pub(crate) fn add_to(&self, x: Tensor<2>, around: &Sublayer, pass: &Pass) -> Tensor<2> {
        let input = around.input(x.clone());
        let inner = match self.sparsity {
            None => input.gated(&self.gate, &self.up, self.activation, pass),
            Some(sparsity) => {
                let x = input.normed();
                let gate = above_threshold(self.gate.forward(x.clone(), pass), sparsity);
                lm_kernels::glu(gate, self.up.forward(x, pass), self.activation)
            }
        }; // [rows, inner]
        around.add_projected(x, inner, &self.down, pass)
    }
}

/// By how much each gate of a row is above the row's threshold; 0 for those below.
fn above_threshold(gates: Tensor<2>, sparsity: Sparsity) -> Tensor<2> {
    let mean = gates.clone().mean_dim(1); // [rows, 1]
    let centred = gates - mean;
    let deviation = centred.clone().square().mean_dim(1).sqrt();
    relu(centred - deviation * sparsity.deviations)
}
