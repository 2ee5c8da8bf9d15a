//! GPT-OSS: experts with biases and a clamped gate in every layer, attention sinks, a sliding window on every
//! other layer, YaRN. Source: gpt-oss-120b & gpt-oss-20b Model Card (arXiv 2508.10925); `config.json` of
//! openai/gpt-oss-20b; `GptOssConfig` of transformers for the defaults.

use lm_formats::Result;
use lm_kernels::Activation;
use serde::Deserialize;

use super::{Architecture, BASE};
use crate::checkpoint::{LayerParam, Param, Piece, TensorLocation, hugging_face_name};
use crate::config::{ModelConfig, RopeParameters, invalid, unsupported};
use crate::gguf::{EXPERTS, GgufArchitecture, layer_types};
use crate::spec::{Bias, DecoderSpec, ExpertKeys, ExpertsSpec, Mlp, RouterSpec, Sinks, activation, windows};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["gpt_oss"],
    goldens: &["gpt-oss-tiny", "gpt-oss-tiny-bf16", "gpt-oss-tiny-odd"],
    spec,
    weight_name,
    locations,
    ignored_suffixes: &[],
    gguf: &[&GGUF],
    defaults: r#"{
        "head_dim": 64, "num_key_value_heads": 8, "sliding_window": 128, "attention_bias": true, "rope_theta": 150000.0,
        "num_experts_per_tok": 4, "swiglu_alpha": 1.702, "swiglu_limit": 7.0
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("attention.sliding_window", "sliding_window"),
        ("expert_count", "num_local_experts"),
        ("expert_feed_forward_length", "intermediate_size"),
        ("expert_used_count", "num_experts_per_tok"),
    ],
    read: |model, config| {
        layer_types(model, config, 2)?;
        // True of all checkpoints; files do not contain it.
        if let Some(rope) = config.get_mut("rope_parameters").and_then(|rope| rope.as_object_mut()) {
            rope.insert("truncate".to_owned(), false.into());
        }
        Ok(())
    },
    tensors: &[
        EXPERTS,
        &[
            ("attn_sinks.weight", "self_attn.sinks"),
            ("ffn_gate_inp", "mlp.router"),
            ("post_attention_norm", "post_attention_layernorm"),
        ],
    ],
    ..GgufArchitecture::new("gpt-oss", "gpt_oss")
};

/// Keys of this architecture alone.
#[derive(Deserialize)]
struct Keys {
    #[serde(alias = "num_experts")]
    num_local_experts: usize,
    num_experts_per_tok: usize,
    swiglu_alpha: f32,
    swiglu_limit: f32,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let keys: Keys = config.read()?;
    let mut spec = DecoderSpec::llama(&with_rope(config))?;
    let windows = windows(config, config.sliding_window, |layer| layer.is_multiple_of(2))?;
    for (attention, window) in spec.attention_mut().zip(windows) {
        (attention.sinks, attention.window) = (Sinks::PerHead, window);
    }
    let experts = experts(config, &keys)?;
    for layer in &mut spec.layers {
        layer.mlp = Mlp::Experts(experts.clone());
    }
    Ok(spec)
}

/// Returns the config with the reference's RoPE scaling where a file has none.
fn with_rope(config: &ModelConfig) -> ModelConfig {
    let mut config = config.clone();
    if config.rope_parameters.is_none() && config.rope_scaling.is_none() {
        config.rope_scaling = Some(RopeParameters {
            rope_type: Some("yarn".into()),
            factor: Some(32.0),
            beta_fast: Some(32.0),
            beta_slow: Some(1.0),
            truncate: Some(false),
            original_max_position_embeddings: Some(4096.0),
            ..RopeParameters::default()
        });
    }
    config
}

fn experts(config: &ModelConfig, keys: &Keys) -> Result<ExpertsSpec> {
    let name = config.hidden_act.as_deref().unwrap_or("silu");
    if activation("hidden_act", name)? != Activation::Silu {
        return Err(unsupported("hidden_act", name, "silu"));
    }
    let (alpha, limit) = (keys.swiglu_alpha, keys.swiglu_limit);
    for (key, value) in [("swiglu_alpha", alpha), ("swiglu_limit", limit)] {
        if !(value.is_finite() && value > 0.0) {
            return Err(invalid(key, value, "a positive number"));
        }
    }
    let experts = ExpertsSpec {
        num_experts: keys.num_local_experts,
        top_k: keys.num_experts_per_tok,
        intermediate_size: config.intermediate_size,
        activation: Activation::ClampedSwiglu { alpha, limit },
        bias: Bias::Present,
        router: RouterSpec { bias: Bias::Present, ..RouterSpec::softmax(true) },
    };
    let names = ExpertKeys {
        num_experts: "num_local_experts",
        top_k: "num_experts_per_tok",
        intermediate_size: "intermediate_size",
    };
    experts.check(names, config.hidden_size)?;
    Ok(experts)
}

fn weight_name(param: Param) -> String {
    match param {
        Param::Layer(layer, LayerParam::Router(Piece::Weight)) => {
            format!("model.layers.{layer}.mlp.router.weight")
        }
        Param::Layer(layer, LayerParam::Router(Piece::Bias)) => {
            format!("model.layers.{layer}.mlp.router.bias")
        }
        _ => hugging_face_name(param),
    }
}

/// Gate and up are interleaved, and all experts of a layer are one tensor: of floats with transposed
/// matrices, or of MXFP4.
fn locations(spec: &DecoderSpec, param: Param) -> Vec<TensorLocation> {
    let Param::Layer(layer, param) = param else { return Vec::new() };
    let Some(&ExpertsSpec { num_experts, intermediate_size: inner, .. }) = spec.layers[layer].mlp.experts()
    else {
        return Vec::new();
    };
    let name = |part: &str| format!("model.layers.{layer}.mlp.experts.{part}");
    let (halves, hidden) = (2 * inner, spec.hidden_size);
    let weights = |first| {
        vec![
            TensorLocation::columns(name("gate_up_proj"), [num_experts, hidden, halves], 2, first),
            TensorLocation::strided(name("gate_up_proj_blocks"), 2, first, num_experts * halves),
        ]
    };
    let biases =
        |first| vec![TensorLocation::strided(name("gate_up_proj_bias"), 2, first, num_experts * halves)];
    match param {
        LayerParam::ExpertGates(Piece::Weight) => weights(0),
        LayerParam::ExpertUps(Piece::Weight) => weights(1),
        LayerParam::ExpertDowns(Piece::Weight) => vec![
            TensorLocation::columns(name("down_proj"), [num_experts, inner, hidden], 1, 0),
            TensorLocation::whole(name("down_proj_blocks")),
        ],
        LayerParam::ExpertGates(Piece::Bias) => biases(0),
        LayerParam::ExpertUps(Piece::Bias) => biases(1),
        LayerParam::ExpertDowns(Piece::Bias) => vec![TensorLocation::whole(name("down_proj_bias"))],
        _ => Vec::new(),
    }
}
