use burn::tensor::Tensor;
use lm_kernels::{Activation, Weight};

use super::{ForwardContext, GatedMlp, LayerLoader, MoeMlp, ResidualBlock};
use crate::checkpoint::LayerParam;
use crate::error::Result;
use crate::nn::{Norm, RmsNorm};
use crate::spec::{DenseBranch, ExpertsSpec, GatedSpec};

/// Dense gated block with a mixture of experts parallel to it; the two outputs are added.
///
/// # Source
/// `Gemma4TextDecoderLayer`, `Qwen2MoeSparseMoeBlock` of transformers 5.23; DeepSeekMoE, arXiv 2401.06066.
pub(crate) struct DenseAndMoe {
    gated: GatedMlp,
    experts: MoeMlp,
    branch: Branch,
}

/// Loaded form of a [`DenseBranch`].
enum Branch {
    OwnNorms(Box<OwnNorms>),
    /// A shared expert, with the projection of a row to the logit of its gate.
    Shared(Option<Box<Weight>>),
}

/// Norms of the block's output, the inputs of router and experts, and the experts' output.
struct OwnNorms {
    gated: Norm,
    router: RmsNorm,
    experts_pre: Norm,
    experts_post: Norm,
    /// Factor on the routing weight of each expert.
    factors: Vec<f32>,
}

impl DenseAndMoe {
    pub(crate) fn load(
        layer: &mut LayerLoader<'_, '_>,
        gated: GatedSpec,
        experts: &ExpertsSpec,
        branch: DenseBranch,
    ) -> Result<Self> {
        Ok(Self {
            gated: GatedMlp::load(layer, branch.projections(), gated)?,
            experts: MoeMlp::load(layer, experts)?,
            branch: match branch {
                DenseBranch::OwnNorms => {
                    Branch::OwnNorms(Box::new(OwnNorms::load(layer, experts.num_experts)?))
                }
                DenseBranch::Shared => Branch::Shared(None),
                DenseBranch::GatedShared => {
                    let hidden = layer.hidden();
                    Branch::Shared(Some(Box::new(layer.float_matrix(
                        LayerParam::SharedRowGate,
                        1,
                        hidden,
                    )?)))
                }
            },
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
        let dense = self.gated.forward(residual.input(x.clone()), context); // [rows, hidden]
        let both = match &self.branch {
            Branch::OwnNorms(norms) => {
                norms.gated.forward(dense) + norms.experts_output(&self.experts, x.clone())?
            }
            Branch::Shared(gate) => {
                let input = residual.input(x.clone()).normed(); // [rows, hidden]
                let routing = self.experts.routing(input.clone())?;
                let dense = match gate {
                    None => dense,
                    Some(gate) => gated_rows(dense, lm_kernels::linear(input.clone(), gate)),
                };
                self.experts.forward(input, routing) + dense
            }
        };
        Ok(residual.add(x, both))
    }
}

impl OwnNorms {
    fn load(layer: &mut LayerLoader<'_, '_>, num_experts: usize) -> Result<Self> {
        let hidden = layer.hidden();
        let router = layer.norm_as_stored(LayerParam::RouterNorm, hidden)?;
        Ok(Self {
            gated: layer.norm(LayerParam::GatedPostNorm, hidden)?,
            router: router.times((hidden as f32).sqrt().recip()),
            experts_pre: layer.norm(LayerParam::ExpertsNorm, hidden)?,
            experts_post: layer.norm(LayerParam::ExpertsPostNorm, hidden)?,
            factors: layer.values(LayerParam::ExpertFactors, num_experts)?,
        })
    }

    /// Returns the normed output of the experts for the rows `x`, `[rows, hidden]`.
    fn experts_output(&self, experts: &MoeMlp, x: Tensor<2>) -> Result<Tensor<2>> {
        let mut routing = experts.routing(self.router.forward(x.clone()))?;
        for (weight, &expert) in routing.weights.iter_mut().zip(&routing.experts) {
            *weight *= self.factors[expert as usize];
        }
        Ok(self.experts_post.forward(experts.forward(self.experts_pre.forward(x), routing)))
    }
}

/// Multiplies each row, `[rows, width]`, by the sigmoid of its logit, `[rows, 1]`.
fn gated_rows(rows: Tensor<2>, logits: Tensor<2>) -> Tensor<2> {
    let ones = logits.ones_like();
    rows * lm_kernels::glu(logits, ones, Activation::Sigmoid)
}
