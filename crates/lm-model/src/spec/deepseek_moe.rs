//! Experts of DeepSeek-V2 and V3, which GLM-4.5 and GLM-4.7-Flash have too: shared ones beside routed ones,
//! behind dense layers. Source: DeepSeekMoE (arXiv 2401.06066), DeepSeek-V2 (arXiv 2405.04434), DeepSeek-V3
//! (arXiv 2412.19437).

use lm_formats::Result;
use serde::Deserialize;

use super::{
    Bias, DecoderSpec, DenseBranch, ExpertGroups, ExpertKeys, ExpertsSpec, GatedSpec, Mlp, RouterScores,
    RouterSpec, RoutingNorm, activation,
};
use crate::checkpoint::{LayerParam, Param, hugging_face_name};
use crate::config::{ModelConfig, invalid, unsupported};

/// Routers of the two generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouterKind {
    /// V2: softmax; groups, if any, by their best score.
    Softmax,
    /// V3: sigmoids with corrections; groups by the sum of their two best scores.
    Sigmoid,
}

#[derive(Deserialize)]
struct Keys {
    #[serde(alias = "num_local_experts", alias = "num_experts")]
    n_routed_experts: usize,
    n_shared_experts: usize,
    num_experts_per_tok: usize,
    moe_intermediate_size: usize,
    n_group: Option<usize>,
    topk_group: Option<usize>,
    norm_topk_prob: bool,
    routed_scaling_factor: f64,
    /// Of V2 only.
    topk_method: Option<String>,
}

#[derive(Deserialize)]
struct DenseLayers {
    /// Number of layers, from the first, that have no experts.
    first_k_dense_replace: usize,
}

/// Puts experts in place of the dense blocks, but for those of the first layers.
pub(crate) fn add_experts(config: &ModelConfig, kind: RouterKind, spec: &mut DecoderSpec) -> Result<()> {
    let DenseLayers { first_k_dense_replace } = config.read()?;
    let mlp = experts(config, kind)?;
    for layer in spec.layers.iter_mut().skip(first_k_dense_replace) {
        layer.mlp = mlp.clone();
    }
    Ok(())
}

/// Reads the feed-forward block of the layers with experts.
pub(crate) fn experts(config: &ModelConfig, kind: RouterKind) -> Result<Mlp> {
    let keys: Keys = config.read()?;
    let experts = ExpertsSpec {
        num_experts: keys.n_routed_experts,
        top_k: keys.num_experts_per_tok,
        intermediate_size: keys.moe_intermediate_size,
        activation: activation("hidden_act", config.hidden_act.as_deref().unwrap_or("silu"))?,
        bias: Bias::Absent,
        router: router(&keys, kind)?,
    };
    let names = ExpertKeys {
        num_experts: "n_routed_experts",
        top_k: "num_experts_per_tok",
        intermediate_size: "moe_intermediate_size",
    };
    experts.check(names, config.hidden_size)?;
    let Some(width) = keys.n_shared_experts.checked_mul(keys.moe_intermediate_size) else {
        return Err(invalid("n_shared_experts", keys.n_shared_experts, "a smaller number"));
    };
    if width == 0 {
        return Ok(Mlp::Experts(experts));
    }
    let shared = GatedSpec::beside(&experts, "n_shared_experts · moe_intermediate_size", width)?;
    Ok(Mlp::DenseAndMoe(shared, experts, DenseBranch::Shared))
}

fn router(keys: &Keys, kind: RouterKind) -> Result<RouterSpec> {
    let (count, top_k) = (keys.n_group.unwrap_or(1), keys.topk_group.unwrap_or(1));
    let groups = |best| ExpertGroups { count, top_k, best };
    let plain = RouterSpec { scale: keys.routed_scaling_factor as f32, ..RouterSpec::softmax(false) };
    match kind {
        RouterKind::Sigmoid => Ok(RouterSpec {
            scores: RouterScores::Sigmoid,
            correction: Bias::Present,
            groups: (count != 1 || top_k != 1).then(|| groups(2)),
            norm: if keys.norm_topk_prob { RoutingNorm::SumPlus(1e-20) } else { RoutingNorm::None },
            ..plain
        }),
        // The reference passes over it, DeepSeek's own code norms and does not scale then.
        RouterKind::Softmax if keys.norm_topk_prob => Err(unsupported("norm_topk_prob", true, "false")),
        RouterKind::Softmax => match keys.topk_method.as_deref().unwrap_or("greedy") {
            "greedy" => Ok(plain),
            "group_limited_greedy" => Ok(RouterSpec { groups: Some(groups(1)), ..plain }),
            other => Err(unsupported("topk_method", other, "greedy, group_limited_greedy")),
        },
    }
}

pub(crate) fn weight_name(param: Param) -> String {
    match param {
        Param::Layer(_, LayerParam::SharedGate(_) | LayerParam::SharedUp(_) | LayerParam::SharedDown(_)) => {
            hugging_face_name(param).replace(".shared_expert.", ".shared_experts.")
        }
        other => hugging_face_name(other),
    }
}
