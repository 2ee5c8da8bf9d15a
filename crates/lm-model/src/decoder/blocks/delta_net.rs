use std::sync::Arc;

use burn::tensor::Tensor;
use lm_kernels::{Activation, CausalConv, DeltaNet, KvPool};

use super::{ForwardContext, LayerLoader, Projection, ResidualBlock};
use crate::checkpoint::{LayerParam, Piece};
use crate::error::Result;
use crate::nn::RmsNorm;
use crate::spec::{Bias, DeltaNetLayer};

/// Linear attention by the gated delta rule, with its states in the pages of the cache.
///
/// # Source
/// Gated Delta Networks, arXiv 2412.06464; `Qwen3_5GatedDeltaNet` of transformers 5.23.
pub(crate) struct GatedDeltaNet {
    qkv: Projection,
    gate: Projection,
    a: Projection,
    beta: Projection,
    net: Arc<DeltaNet>,
    /// Norm over each value head.
    norm: RmsNorm,
    output: Projection,
    layer: usize,
}

impl GatedDeltaNet {
    pub(crate) fn load(layer: &mut LayerLoader<'_, '_>, net: &DeltaNetLayer) -> Result<Self> {
        let (hidden, heads) = (layer.hidden(), net.heads.num_value_heads);
        let weight = layer.values(LayerParam::Conv1d(Piece::Weight), net.heads.width() * net.kernel)?;
        let decays = layer.values(LayerParam::DeltaALog, heads)?.into_iter().map(f32::exp).collect();
        let dt_bias = layer.values(LayerParam::DeltaDtBias, heads)?;
        let conv = CausalConv::new(net.kernel, net.heads.width(), &weight, None);
        let norm = layer.norm_as_stored(LayerParam::DeltaNorm, net.heads.value_dim)?;
        let mut linear = |param, shape| Projection::load(layer, param, shape, Bias::Absent);
        Ok(Self {
            qkv: linear(LayerParam::DeltaQkv, [hidden, net.heads.width()])?,
            gate: linear(LayerParam::DeltaGate, [hidden, net.value_width()])?,
            a: linear(LayerParam::DeltaA, [hidden, heads])?,
            beta: linear(LayerParam::DeltaBeta, [hidden, heads])?,
            net: Arc::new(DeltaNet::new(net.heads, conv, decays, dt_bias)),
            norm,
            output: linear(LayerParam::DeltaOutput, [net.value_width(), hidden])?,
            layer: layer.layer,
        })
    }

    /// Returns `x`, `[rows, hidden]`, plus the net's output; writes the sequences' states to the cache.
    pub(crate) fn add_to(
        &self,
        x: Tensor<2>,
        residual: &ResidualBlock,
        context: &ForwardContext,
        cache: &mut KvPool,
    ) -> Tensor<2> {
        let input = residual.input(x.clone()).normed();
        let [qkv, gate, a, beta] = [&self.qkv, &self.gate, &self.a, &self.beta]
            .map(|projection| projection.forward(input.clone(), context));
        let layout = &context.layouts[cache.layout().group_of(self.layer)];
        let read = lm_kernels::delta_net(qkv, a, beta, &self.net, cache, self.layer, layout);
        let read = self.norm.forward_parts(read).flatten(1, 2); // [rows, num_value_heads * value_dim]
        let gated = lm_kernels::glu(gate, read, Activation::Silu);
        residual.add_projected(x, gated, &self.output, context)
    }
}
