use burn::tensor::Tensor;
use lm_kernels::Activation;

use super::{ForwardContext, LayerLoader, Projection, ResidualBlock};
use crate::checkpoint::LayerParam;
use crate::error::Result;
use crate::spec::PlainSpec;

/// Ungated feed-forward: `down(activation(up(x)))`.
///
/// # Source
/// Attention Is All You Need, arXiv 1706.03762.
pub(crate) struct PlainMlp {
    up: Projection,
    down: Projection,
    activation: Activation,
}

impl PlainMlp {
    pub(crate) fn load(layer: &mut LayerLoader<'_, '_>, spec: PlainSpec) -> Result<Self> {
        let PlainSpec { intermediate_size: inner, activation, bias } = spec;
        let hidden = layer.hidden();
        Ok(Self {
            up: Projection::load(layer, LayerParam::Up, [hidden, inner], bias)?,
            down: Projection::load(layer, LayerParam::Down, [inner, hidden], bias)?,
            activation,
        })
    }

    /// Returns `x`, `[rows, hidden]`, plus the block's output, with the norms and the scale of `residual`.
    pub(crate) fn add_to(
        &self,
        x: Tensor<2>,
        residual: &ResidualBlock,
        context: &ForwardContext,
    ) -> Tensor<2> {
        let input = residual.input(x.clone()).normed();
        let inner = self.up.activated(input, self.activation, context); // [rows, inner]
        residual.add_projected(x, inner, &self.down, context)
    }
}
