use std::sync::Arc;

use burn::tensor::Tensor;
use lm_kernels::{Activation, CausalConv, KvPool, Mamba2};

use super::{ForwardContext, LayerLoader, Projection, ResidualBlock};
use crate::checkpoint::{LayerParam, Piece};
use crate::error::Result;
use crate::nn::RmsNorm;
use crate::spec::{GatedNorm, Mamba2Layer};

/// State space layer of Mamba-2, with its states in the pages of the cache.
///
/// # Source
/// Transformers are SSMs, arXiv 2405.21060; `GraniteMoeHybridMambaLayer` of transformers 5.23.
pub(crate) struct Mamba2Mixer {
    input: Projection,
    net: Arc<Mamba2>,
    norm: PartsNorm,
    output: Projection,
    layer: usize,
}

/// RMS norm over each of several parts of a row, with a weight for each element of the row.
struct PartsNorm {
    norm: RmsNorm,
    /// Number of parts, and the weight of the row; `None` where the norm is that of the whole row.
    parts: Option<(usize, Tensor<2>)>,
}

impl Mamba2Mixer {
    pub(crate) fn load(layer: &mut LayerLoader<'_, '_>, net: &Mamba2Layer) -> Result<Self> {
        let (hidden, spec) = (layer.hidden(), net.heads);
        let (width, inner, heads) = (spec.conv_width(), spec.inner_width(), spec.num_heads);
        let weight = layer.values(LayerParam::Conv1d(Piece::Weight), width * net.kernel)?;
        let conv_bias = net.conv_bias.if_present(|| layer.values(LayerParam::Conv1d(Piece::Bias), width))?;
        let conv = CausalConv::new(net.kernel, width, &weight, conv_bias.as_deref());
        let decays = layer.values(LayerParam::MambaALog, heads)?.into_iter().map(f32::exp).collect();
        let dt_bias = layer.values(LayerParam::MambaDtBias, heads)?;
        let skips = layer.values(LayerParam::MambaSkip, heads)?;
        let GatedNorm::AfterGate(parts) = net.norm;
        let projected = [hidden, spec.projected_width()];
        Ok(Self {
            input: Projection::load(layer, LayerParam::MambaInput, projected, net.bias)?,
            net: Arc::new(Mamba2::new(spec, conv, decays, dt_bias, skips)),
            norm: PartsNorm::load(layer, LayerParam::MambaNorm, inner, parts)?,
            output: Projection::load(layer, LayerParam::MambaOutput, [inner, hidden], net.bias)?,
            layer: layer.layer,
        })
    }

    /// Returns `x`, `[rows, hidden]`, plus the layer's output; writes the sequences' states to the cache.
    pub(crate) fn add_to(
        &self,
        x: Tensor<2>,
        residual: &ResidualBlock,
        context: &ForwardContext,
        cache: &mut KvPool,
    ) -> Tensor<2> {
        let projected = self.input.forward(residual.input(x.clone()).normed(), context);
        let gate = projected.clone().narrow(1, 0, self.net.spec().inner_width());
        let layout = &context.layouts[cache.layout().group_of(self.layer)];
        let y = lm_kernels::mamba2(projected, &self.net, cache, self.layer, layout); // [rows, inner]
        let gated = self.norm.forward(lm_kernels::glu(gate, y, Activation::Silu));
        residual.add_projected(x, gated, &self.output, context)
    }
}

impl PartsNorm {
    fn load(layer: &mut LayerLoader<'_, '_>, param: LayerParam, width: usize, parts: usize) -> Result<Self> {
        let whole = layer.norm_as_stored(param, width)?;
        if parts == 1 {
            return Ok(Self { norm: whole, parts: None });
        }
        let norm = layer.unweighted_norm(width / parts);
        Ok(Self { norm, parts: Some((parts, whole.weight.unsqueeze_dim(0))) })
    }

    /// `[rows, width]` to the same shape.
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let Some((parts, weight)) = &self.parts else { return self.norm.forward(x) };
        let [rows, width] = x.dims();
        let normed: Tensor<2> =
            self.norm.forward_parts(x.reshape([rows, *parts, width / parts])).flatten(1, 2);
        normed * weight.clone()
    }
}
