use burn::tensor::Tensor;
use lm_kernels::Activation;

use super::{BlockInput, ForwardContext, LayerLoader, Projection, ResidualBlock};
use crate::checkpoint::LayerParam;
use crate::error::{Error, Result};
use crate::spec::{PlainActivation, PlainSpec, xielu_of};

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
            activation: match activation {
                PlainActivation::Fixed(activation) => activation,
                PlainActivation::Xielu => xielu(layer)?,
            },
        })
    }

    /// Returns `x`, `[rows, hidden]`, plus the block's output for `input`, with the post-norm and the scale
    /// of `residual`.
    pub(crate) fn add_to(
        &self,
        x: Tensor<2>,
        input: BlockInput<'_>,
        residual: &ResidualBlock,
        context: &ForwardContext,
    ) -> Tensor<2> {
        let inner = self.up.activated(input.normed(), self.activation, context); // [rows, inner]
        residual.add_projected(x, inner, &self.down, context)
    }
}

/// Loads the activation's parameters.
fn xielu(layer: &mut LayerLoader<'_, '_>) -> Result<Activation> {
    let mut value = |param| Ok::<_, Error>(layer.values(param, 1)?[0]);
    Ok(xielu_of([
        value(LayerParam::XieluAlphaP)?,
        value(LayerParam::XieluAlphaN)?,
        value(LayerParam::XieluBeta)?,
        value(LayerParam::XieluEps)?,
    ]))
}
