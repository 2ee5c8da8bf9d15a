//! ERNIE 4.5 with experts and shared experts in place of the feed-forward blocks, in some layers. Source:
//! ERNIE 4.5 Technical Report (Baidu, 2025); `config.json` of baidu/ERNIE-4.5-21B-A3B-PT;
//! `Ernie4_5_MoeConfig` of transformers for the defaults.

use lm_formats::Result;
use serde::Deserialize;

use super::{Architecture, BASE, ernie4_5};
use crate::checkpoint::{LayerParam, Param};
use crate::config::{ModelConfig, invalid};
use crate::gguf::{EXPERTS, GgufArchitecture};
use crate::spec::deepseek_moe;
use crate::spec::expert_tensors::{self, PROJECTIONS};
use crate::spec::{
    Bias, DecoderSpec, DenseBranch, ExpertKeys, ExpertsSpec, GatedSpec, Mlp, RouterSpec, RoutingNorm,
    activation,
};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["ernie4_5_moe"],
    goldens: &["ernie4_5-moe-tiny", "ernie4_5-moe-tiny-bias", "ernie4_5-moe-tiny-some"],
    spec,
    weight_name,
    locations: |spec, param| expert_tensors::one_tensor_each(spec, param, "mlp.experts", PROJECTIONS),
    ignored_prefixes: &["model.mtp_"],
    gguf: &[&GGUF],
    defaults: r#"{
        "vocab_size": 103424, "hidden_size": 2560, "intermediate_size": 12288, "num_hidden_layers": 28,
        "num_attention_heads": 20, "num_key_value_heads": 4, "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "use_bias": false, "tie_word_embeddings": true,
        "moe_intermediate_size": 1536, "moe_k": 6, "moe_num_experts": 64, "moe_num_shared_experts": 2,
        "moe_layer_start_index": 1, "moe_layer_end_index": -1, "moe_layer_interval": 1, "moe_norm_min": 1e-12
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("expert_count", "moe_num_experts"),
        ("expert_feed_forward_length", "moe_intermediate_size"),
        ("expert_shared_count", "moe_num_shared_experts"),
        ("expert_used_count", "moe_k"),
        ("interleave_moe_layer_step", "moe_layer_interval"),
        ("leading_dense_block_count", "moe_layer_start_index"),
    ],
    read: |model, config| {
        model.size(SHARED_WIDTH)?; // Follows from the others.
        (ernie4_5::GGUF.read)(model, config)
    },
    write: |_, spec, settings| {
        let shared = spec.layers.iter().find_map(|layer| match &layer.mlp {
            Mlp::DenseAndMoe(shared, ..) => Some(shared.intermediate_size),
            _ => None,
        });
        shared.map_or(Ok(()), |width| settings.put_size(SHARED_WIDTH, "moe_num_shared_experts", width))
    },
    tensors: &[
        EXPERTS,
        &[
            ("exp_probs_b.bias", "mlp.moe_statics.e_score_correction_bias"),
            ("ffn_down_shexp", "mlp.shared_experts.down_proj"),
            ("ffn_gate_inp", "mlp.gate"),
            ("ffn_gate_shexp", "mlp.shared_experts.gate_proj"),
            ("ffn_up_shexp", "mlp.shared_experts.up_proj"),
        ],
    ],
    ..GgufArchitecture::new("ernie4_5-moe", "ernie4_5_moe")
};

const SHARED_WIDTH: &str = "expert_shared_feed_forward_length";

#[derive(Deserialize)]
struct Keys {
    #[serde(alias = "num_experts")]
    moe_num_experts: usize,
    #[serde(alias = "num_experts_per_tok")]
    moe_k: usize,
    moe_intermediate_size: usize,
    moe_num_shared_experts: usize,
    /// First and last layer that may have experts; -1 for the last of all.
    moe_layer_start_index: usize,
    moe_layer_end_index: i64,
    /// Layer `n`, counted from 1, has experts if `n` is a multiple of this.
    moe_layer_interval: usize,
    /// Least divisor of the routing weights.
    moe_norm_min: f64,
    /// True if all projections, the output head included, have a bias; null is false.
    use_bias: Option<bool>,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let keys: Keys = config.read()?;
    if keys.moe_layer_interval == 0 {
        return Err(invalid("moe_layer_interval", 0, "1 or more"));
    }
    let mut spec = ernie4_5::spec(config)?;
    spec.head_bias = keys.use_bias.unwrap_or(false).into();
    let experts = ExpertsSpec {
        num_experts: keys.moe_num_experts,
        top_k: keys.moe_k,
        intermediate_size: keys.moe_intermediate_size,
        activation: activation("hidden_act", config.hidden_act.as_deref().unwrap_or("silu"))?,
        bias: Bias::Absent,
        router: RouterSpec {
            correction: Bias::Present,
            norm: RoutingNorm::SumAtLeast(keys.moe_norm_min as f32),
            ..RouterSpec::softmax(false)
        },
    };
    let names = ExpertKeys {
        num_experts: "moe_num_experts",
        top_k: "moe_k",
        intermediate_size: "moe_intermediate_size",
    };
    experts.check(names, config.hidden_size)?;
    let last = usize::try_from(keys.moe_layer_end_index).unwrap_or(usize::MAX);
    for (index, layer) in spec.layers.iter_mut().enumerate() {
        let routed = (keys.moe_layer_start_index..=last).contains(&index);
        let Mlp::Gated(dense) = layer.mlp else { continue };
        if routed && (index + 1).is_multiple_of(keys.moe_layer_interval) {
            layer.mlp = shared_and_experts(&keys, dense, experts.clone())?;
        }
    }
    Ok(spec)
}

fn shared_and_experts(keys: &Keys, dense: GatedSpec, experts: ExpertsSpec) -> Result<Mlp> {
    let count = keys.moe_num_shared_experts;
    if count == 0 {
        return Ok(Mlp::Experts(experts));
    }
    let width = count.saturating_mul(keys.moe_intermediate_size);
    let shared = GatedSpec::beside(&experts, "moe_num_shared_experts · moe_intermediate_size", width)?;
    Ok(Mlp::DenseAndMoe(GatedSpec { bias: dense.bias, ..shared }, experts, DenseBranch::Shared))
}

fn weight_name(param: Param) -> String {
    match param {
        Param::Layer(layer, LayerParam::RouterCorrection) => {
            format!("model.layers.{layer}.mlp.moe_statics.e_score_correction_bias")
        }
        other => deepseek_moe::weight_name(other),
    }
}
