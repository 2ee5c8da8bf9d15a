use burn::tensor::Tensor;

use super::{ForwardContext, GatedMlp, LayerLoader, MoeMlp, ResidualBlock};
use crate::checkpoint::LayerParam;
use crate::error::Result;
use crate::nn::{Norm, RmsNorm};
use crate::spec::{ExpertsSpec, GatedSpec};

/// Dense gated block with a mixture of experts parallel to it. Block, router and experts each have their own
/// norm of the input; the two outputs are normed and added.
///
/// # Source
/// `Gemma4TextDecoderLayer` of transformers 5.23.
pub(crate) struct DenseAndMoe {
    gated: GatedMlp,
    gated_norm: Norm,
    router_norm: RmsNorm,
    experts_pre_norm: Norm,
    experts: MoeMlp,
    experts_post_norm: Norm,
    /// Factor on the routing weight of each expert.
    factors: Vec<f32>,
}

impl DenseAndMoe {
    pub(crate) fn load(
        layer: &mut LayerLoader<'_, '_>,
        gated: GatedSpec,
        experts: &ExpertsSpec,
    ) -> Result<Self> {
        let hidden = layer.hidden();
        let router_norm = layer.norm_as_stored(LayerParam::RouterNorm, hidden)?;
        let gated_norm = layer.norm(LayerParam::GatedPostNorm, hidden)?;
        let experts_pre_norm = layer.norm(LayerParam::ExpertsNorm, hidden)?;
        let experts_post_norm = layer.norm(LayerParam::ExpertsPostNorm, hidden)?;
        Ok(Self {
            gated: GatedMlp::load(layer, gated)?,
            gated_norm,
            router_norm: router_norm.times((hidden as f32).sqrt().recip()),
            experts_pre_norm,
            experts: MoeMlp::load(layer, experts)?,
            experts_post_norm,
            factors: layer.values(LayerParam::ExpertFactors, experts.num_experts)?,
        })
    }

    /// Bytes of the experts that a row is not routed to.
    pub(crate) fn inactive_bytes(&self) -> u64 {
        self.experts.inactive_bytes()
    }

    /// Returns `x`, `[rows, hidden]`, plus the sum of both outputs.
    pub(crate) fn add_to(
        &self,
        x: Tensor<2>,
        residual: &ResidualBlock,
        context: &ForwardContext,
    ) -> Result<Tensor<2>> {
        let gated = self.gated_norm.forward(self.gated.forward(residual.input(x.clone()), context)); // [rows, hidden]
        let mut routing = self.experts.routing(self.router_norm.forward(x.clone()))?;
        for (weight, &expert) in routing.weights.iter_mut().zip(&routing.experts) {
            *weight *= self.factors[expert as usize];
        }
        let routed = self.experts.forward(self.experts_pre_norm.forward(x.clone()), routing); // [rows, hidden]
        Ok(residual.add(x, gated + self.experts_post_norm.forward(routed)))
    }
}
