//! LFM2 MoE: LFM2 with experts in place of the feed-forward blocks of the upper layers. Source: LFM2
//! Technical Report (arXiv 2511.23404); `config.json` of LiquidAI/LFM2-8B-A1B; `Lfm2MoeConfig` of
//! transformers for the defaults.

use lm_formats::{GgufEntry, Result};
use serde::Deserialize;

use super::{Architecture, BASE, lfm2};
use crate::checkpoint::{LayerParam, Param, Piece};
use crate::config::ModelConfig;
use crate::gguf::{EXPERTS, GgufArchitecture, SIGMOID, check_sigmoid_router};
use crate::spec::expert_tensors;
use crate::spec::{
    Bias, DecoderSpec, EXPERT_KEYS, ExpertsSpec, Mlp, RouterScores, RouterSpec, RoutingNorm, activation,
};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["lfm2_moe"],
    goldens: &["lfm2-moe-tiny", "lfm2-moe-tiny-all", "lfm2-moe-tiny-plain"],
    spec,
    weight_name,
    locations: |spec, param| {
        expert_tensors::one_tensor_each(spec, param, "feed_forward.experts", ["w1", "w3", "w2"])
    },
    gguf: &[&GGUF],
    defaults: r#"{
        "vocab_size": 65536, "hidden_size": 2048, "intermediate_size": 7168, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 128000, "rms_norm_eps": 1e-5,
        "norm_eps": 1e-5, "rope_theta": 1000000.0, "tie_word_embeddings": true, "conv_bias": false, "conv_L_cache": 3,
        "block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0, "block_auto_adjust_ff_dim": false,
        "moe_intermediate_size": 1792, "num_dense_layers": 2, "num_experts": 32, "num_experts_per_tok": 4,
        "use_expert_bias": true, "norm_topk_prob": true, "routed_scaling_factor": 1.0
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("attention.layer_norm_rms_epsilon", "norm_eps"),
        ("expert_count", "num_experts"),
        ("expert_feed_forward_length", "moe_intermediate_size"),
        ("expert_used_count", "num_experts_per_tok"),
        ("leading_dense_block_count", "num_dense_layers"),
        ("shortconv.l_cache", "conv_L_cache"),
    ],
    read: |model, config| {
        check_sigmoid_router(model)?;
        let dense = model.size("leading_dense_block_count")?.unwrap_or(0);
        let correction = model.tensor(&format!("blk.{dense}.exp_probs_b.bias"));
        config.insert("use_expert_bias".to_owned(), correction.is_some().into());
        lfm2::read_gguf(model, config)
    },
    write: |config, spec, settings| {
        settings.put("expert_gating_func", GgufEntry::Size(SIGMOID));
        (lfm2::GGUF.write)(config, spec, settings)
    },
    tensors: &[
        EXPERTS,
        &[("exp_probs_b.bias", "feed_forward.expert_bias"), ("ffn_gate_inp", "feed_forward.gate")],
        lfm2::TENSORS,
    ],
    ..GgufArchitecture::new("lfm2moe", "lfm2_moe")
};

#[derive(Deserialize)]
struct Keys {
    num_experts: usize,
    num_experts_per_tok: usize,
    moe_intermediate_size: usize,
    /// Number of layers, from the first, that have no experts.
    num_dense_layers: usize,
    use_expert_bias: bool,
    norm_topk_prob: bool,
    routed_scaling_factor: f64,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let keys: Keys = config.read()?;
    let mut dense = config.clone();
    dense.keys.remove("block_ff_dim"); // Neither is a key of LFM2 MoE.
    dense.keys.insert("block_auto_adjust_ff_dim".to_owned(), false.into());
    let mut spec = lfm2::spec(&dense)?;
    let experts = ExpertsSpec {
        num_experts: keys.num_experts,
        top_k: keys.num_experts_per_tok,
        intermediate_size: keys.moe_intermediate_size,
        activation: activation("hidden_act", config.hidden_act.as_deref().unwrap_or("silu"))?,
        bias: Bias::Absent,
        router: RouterSpec {
            scores: RouterScores::Sigmoid,
            correction: keys.use_expert_bias.into(),
            norm: if keys.norm_topk_prob { RoutingNorm::SumPlus(1e-6) } else { RoutingNorm::None },
            scale: keys.routed_scaling_factor as f32,
            ..RouterSpec::softmax(false)
        },
    };
    experts.check(EXPERT_KEYS, config.hidden_size)?;
    for layer in spec.layers.iter_mut().skip(keys.num_dense_layers) {
        layer.mlp = Mlp::Experts(experts.clone());
    }
    Ok(spec)
}

fn weight_name(param: Param) -> String {
    match param {
        Param::Layer(layer, LayerParam::Router(Piece::Weight)) => {
            format!("model.layers.{layer}.feed_forward.gate.weight")
        }
        Param::Layer(layer, LayerParam::RouterCorrection) => {
            format!("model.layers.{layer}.feed_forward.expert_bias")
        }
        other => lfm2::weight_name(other),
    }
}
