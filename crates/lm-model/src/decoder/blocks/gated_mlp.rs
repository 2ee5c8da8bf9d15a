use burn::tensor::Tensor;
use burn::tensor::activation::relu;
use lm_kernels::Activation;

use super::{BlockInput, ForwardContext, LayerLoader, Projection, ResidualBlock};
use crate::error::Result;
use crate::spec::{GatedParams, GatedSpec, Sparsity};

/// Gated feed-forward: `down(activation(gate(x)) * up(x))`.
///
/// # Source
/// GLU Variants Improve Transformer, arXiv 2002.05202.
pub(crate) struct GatedMlp {
    gate: Projection,
    up: Projection,
    down: Projection,
    activation: Activation,
    sparsity: Option<Sparsity>,
}

impl GatedMlp {
    pub(crate) fn load(
        layer: &mut LayerLoader<'_, '_>,
        [gate, up, down]: GatedParams,
        spec: GatedSpec,
    ) -> Result<Self> {
        let GatedSpec { intermediate_size: inner, activation, bias, sparsity } = spec;
        let hidden = layer.hidden();
        Ok(Self {
            gate: Projection::load(layer, gate, [hidden, inner], bias)?,
            up: Projection::load(layer, up, [hidden, inner], bias)?,
            down: Projection::load(layer, down, [inner, hidden], bias)?,
            activation,
            sparsity,
        })
    }

    /// Applies the MLP as a residual block: pre-norm of `input`, MLP, post-norm and scale of `residual`, then
    /// the addition to `x`.
    ///
    /// # Shapes
    /// - `x`, `input`: `[rows, hidden]`; returns the same
    pub(crate) fn add_to(
        &self,
        x: Tensor<2>,
        input: BlockInput<'_>,
        residual: &ResidualBlock,
        context: &ForwardContext,
    ) -> Tensor<2> {
        let inner = self.inner(input, context);
        residual.add_projected(x, inner, &self.down, context)
    }

    /// Returns the block's output, `[rows, hidden]`.
    pub(crate) fn forward(&self, input: BlockInput<'_>, context: &ForwardContext) -> Tensor<2> {
        self.down.forward(self.inner(input, context), context)
    }

    /// Returns the gated activations, `[rows, inner]`.
    fn inner(&self, input: BlockInput<'_>, context: &ForwardContext) -> Tensor<2> {
        match self.sparsity {
            None => input.gated(&self.gate, &self.up, self.activation, context),
            Some(sparsity) => {
                let x = input.normed();
                let gate = above_threshold(self.gate.forward(x.clone(), context), sparsity);
                lm_kernels::glu(gate, self.up.forward(x, context), self.activation)
            }
        }
    }
}

/// Returns each gate's excess over its row's threshold; 0 for gates below it.
fn above_threshold(gates: Tensor<2>, sparsity: Sparsity) -> Tensor<2> {
    let mean = gates.clone().mean_dim(1); // [rows, 1]
    let centred = gates - mean;
    let deviation = centred.clone().square().mean_dim(1).sqrt();
    relu(centred - deviation * sparsity.deviations)
}
