use burn::tensor::Tensor;

use super::{ExpertsMlp, GatedMlp, Pass, RmsNorm, Sublayer};
use crate::Result;
use crate::spec::{DecoderSpec, ExpertsSpec, GatedSpec};
use crate::weights::{LayerParam, Param, WeightLoader};

/// Gated block with experts parallel to it. Block, router and experts each have their own norm of the input; the two outputs are
/// normed and added.
///
/// # Source
/// `Gemma4TextDecoderLayer` of transformers 5.23.
pub(crate) struct GatedBesideExperts {
    gated: GatedMlp,
    gated_norm: RmsNorm,
    router_norm: RmsNorm,
    before_experts: RmsNorm,
    experts: ExpertsMlp,
    after_experts: RmsNorm,
    /// Factor on the routing weight of each expert.
    factors: Vec<f32>,
}

impl GatedBesideExperts {
    pub(crate) fn load(
        loader: &mut WeightLoader<'_>,
        spec: &DecoderSpec,
        gated: GatedSpec,
        experts: &ExpertsSpec,
        layer: usize,
    ) -> Result<Self> {
        let hidden = spec.hidden_size;
        let router_norm = Param::Layer(layer, LayerParam::RouterNorm);
        let router_norm = RmsNorm::load_as_stored(loader, spec, router_norm, hidden)?;
        let mut norm = |param| RmsNorm::load(loader, spec, Param::Layer(layer, param), hidden);
        let gated_norm = norm(LayerParam::GatedPostNorm)?;
        let before_experts = norm(LayerParam::ExpertsNorm)?;
        let after_experts = norm(LayerParam::ExpertsPostNorm)?;
        let factors = Param::Layer(layer, LayerParam::ExpertFactors);
        Ok(Self {
            gated: GatedMlp::load(loader, gated, hidden, layer)?,
            gated_norm,
            router_norm: router_norm.times((hidden as f32).sqrt().recip()),
            before_experts,
            experts: ExpertsMlp::load(loader, experts, hidden, layer)?,
            after_experts,
            factors: loader.values(factors, experts.num_experts)?,
        })
    }

    /// Bytes of the experts that a row is not routed to.
    pub(crate) fn idle_bytes(&self) -> u64 {
        self.experts.idle_bytes()
    }

    /// Returns `x`, `[rows, hidden]`, plus the sum of both outputs.
    pub(crate) fn add_to(&self, x: Tensor<2>, around: &Sublayer, pass: &Pass) -> Result<Tensor<2>> {
        let gated = self.gated_norm.forward(self.gated.forward(around.input(x.clone()), pass)); // [rows, hidden]
        let mut routing = self.experts.routing(self.router_norm.forward(x.clone()))?;
        for (share, &expert) in routing.weights.iter_mut().zip(&routing.experts) {
            *share *= self.factors[expert as usize];
        }
        let chosen = self.experts.forward(self.before_experts.forward(x.clone()), routing); // [rows, hidden]
        Ok(around.add(x, gated + self.after_experts.forward(chosen)))
    }
}
