use std::sync::Arc;

use burn::tensor::Tensor;
use lm_kernels::{CausalConv, KvPool};

use super::{ForwardContext, LayerLoader, Projection, ResidualBlock};
use crate::checkpoint::{LayerParam, Piece};
use crate::error::Result;
use crate::spec::ShortConvLayer;

/// Gated short convolution over the last few tokens, with its state in the pages of the cache.
///
/// # Source
/// LFM2 Technical Report, arXiv 2511.23404.
pub(crate) struct ShortConv {
    input: Projection,
    conv: Arc<CausalConv>,
    output: Projection,
    layer: usize,
}

impl ShortConv {
    pub(crate) fn load(layer: &mut LayerLoader<'_, '_>, conv: &ShortConvLayer) -> Result<Self> {
        let hidden = layer.hidden();
        let weight = layer.values(LayerParam::Conv1d(Piece::Weight), hidden * conv.kernel)?;
        let bias = conv.bias.if_present(|| layer.values(LayerParam::Conv1d(Piece::Bias), hidden))?;
        Ok(Self {
            input: Projection::load(layer, LayerParam::ConvInput, [hidden, 3 * hidden], conv.bias)?,
            conv: Arc::new(CausalConv::new(conv.kernel, hidden, &weight, bias.as_deref())),
            output: Projection::load(layer, LayerParam::ConvOutput, [hidden, hidden], conv.bias)?,
            layer: layer.layer,
        })
    }

    /// Returns `x`, `[rows, hidden]`, plus the convolution's output; writes the sequences' states to the
    /// cache.
    pub(crate) fn add_to(
        &self,
        x: Tensor<2>,
        residual: &ResidualBlock,
        context: &ForwardContext,
        cache: &mut KvPool,
    ) -> Tensor<2> {
        let gates_and_inputs = self.input.forward(residual.input(x.clone()).normed(), context); // [rows, 3 * hidden]
        let layout = &context.layouts[cache.layout().group_of(self.layer)];
        let mixed = lm_kernels::short_conv(gates_and_inputs, &self.conv, cache, self.layer, layout); // [rows, hidden]
        residual.add_projected(x, mixed, &self.output, context)
    }
}
