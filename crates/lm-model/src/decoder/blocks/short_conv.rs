use std::sync::Arc;

use burn::tensor::Tensor;
use lm_kernels::{CausalConv, KvPool};

use super::{ForwardContext, Linear, ResidualBlock};
use crate::checkpoint::{LayerParam, Param, Piece};
use crate::error::Result;
use crate::loader::WeightLoader;
use crate::spec::{Bias, DecoderSpec, ShortConvLayer};

/// Gated short convolution over the last few tokens, with its state in the pages of the cache.
///
/// # Source
/// LFM2 Technical Report, arXiv 2511.23404.
pub(crate) struct ShortConv {
    input: Linear,
    conv: Arc<CausalConv>,
    output: Linear,
    layer: usize,
}

impl ShortConv {
    pub(crate) fn load(
        loader: &mut WeightLoader<'_>,
        spec: &DecoderSpec,
        conv: &ShortConvLayer,
        layer: usize,
    ) -> Result<Self> {
        let hidden = spec.hidden_size;
        let mut values = |piece, len| loader.values(Param::Layer(layer, LayerParam::Conv1d(piece)), len);
        let weight = values(Piece::Weight, hidden * conv.kernel)?;
        let bias = match conv.bias {
            Bias::Absent => None,
            Bias::Present => Some(values(Piece::Bias, hidden)?),
        };
        Ok(Self {
            input: Linear::load(loader, layer, LayerParam::ConvInput, [hidden, 3 * hidden], conv.bias)?,
            conv: Arc::new(CausalConv::new(conv.kernel, hidden, &weight, bias.as_deref())),
            output: Linear::load(loader, layer, LayerParam::ConvOutput, [hidden, hidden], conv.bias)?,
            layer,
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
