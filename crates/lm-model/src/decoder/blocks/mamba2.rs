use std::sync::Arc;

use burn::tensor::Tensor;
use lm_kernels::{Activation, CausalConv, KvPool, Mamba2};

use super::{ForwardContext, LayerLoader, Projection, ResidualBlock};
use crate::checkpoint::{LayerParam, Piece};
use crate::error::Result;
use crate::nn::PartsNorm;
use crate::spec::{GatedNorm, Mamba2Layer};

/// State space layer of Mamba-2, with its states in the pages of the cache.
///
/// # Source
/// Transformers are SSMs, arXiv 2405.21060; `GraniteMoeHybridMambaLayer` of transformers 5.23.
pub(crate) struct Mamba2Mixer {
    input: Projection,
    net: Arc<Mamba2>,
    norm: PartsNorm,
    /// Number of parts of a row that are normed on their own.
    parts: usize,
    output: Projection,
    layer: usize,
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
            norm: load_norm(layer, inner, parts)?,
            parts,
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
        let [rows, width] = y.dims();
        let gated =
            lm_kernels::glu(gate, y, Activation::Silu).reshape([rows, self.parts, width / self.parts]);
        let gated = self.norm.forward(gated).reshape([rows, width]);
        residual.add_projected(x, gated, &self.output, context)
    }
}

/// Loads the gated norm of rows of `width` elements in several parts.
fn load_norm(layer: &mut LayerLoader<'_, '_>, width: usize, parts: usize) -> Result<PartsNorm> {
    let whole = layer.norm_as_stored(LayerParam::MambaNorm, width)?;
    if parts == 1 {
        return Ok(PartsNorm::whole(whole));
    }
    Ok(PartsNorm::new(layer.unweighted_norm(width / parts), whole.weight, parts))
}
