//! Qwen2 MoE: Qwen2 with experts and a gated shared expert in place of the feed-forward block, in some layers
//! or all. Source: Qwen1.5-MoE (Qwen team, 2024); `config.json` of Qwen/Qwen1.5-MoE-A2.7B; `Qwen2MoeConfig`
//! of transformers for the defaults.

use lm_formats::Result;
use serde::Deserialize;

use super::{Architecture, BASE, qwen3_moe};
use crate::config::ModelConfig;
use crate::gguf::{EXPERTS, GgufArchitecture, SHARED_EXPERT};
use crate::spec::{DecoderSpec, DenseBranch, GatedSpec, Mlp, windows};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["qwen2_moe"],
    goldens: &["qwen2-moe-tiny", "qwen2-moe-tiny-mixed", "qwen2-moe-tiny-one"],
    spec,
    locations: qwen3_moe::locations,
    gguf: &[&GGUF],
    defaults: r#"{
        "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24,
        "num_attention_heads": 16, "num_key_value_heads": 16, "max_position_embeddings": 32768,
        "rms_norm_eps": 1e-6, "sliding_window": 4096, "max_window_layers": 28, "qkv_bias": true,
        "num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 5632
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("expert_count", "num_experts"),
        ("expert_feed_forward_length", "moe_intermediate_size"),
        ("expert_shared_feed_forward_length", "shared_expert_intermediate_size"),
        ("expert_used_count", "num_experts_per_tok"),
    ],
    read: |model, config| {
        config.insert("qkv_bias".to_owned(), model.tensor("blk.0.attn_q.bias").is_some().into());
        Ok(())
    },
    tensors: &[EXPERTS, SHARED_EXPERT, &[("ffn_gate_inp", "mlp.gate")]],
    ..GgufArchitecture::new("qwen2moe", "qwen2_moe")
};

#[derive(Deserialize)]
struct Keys {
    qkv_bias: bool,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let keys: Keys = config.read()?;
    let window = config.sliding_window.filter(|_| config.use_sliding_window);
    let last = config.max_window_layers.unwrap_or(usize::MAX);
    let windows = windows(config, window, |layer| layer < last && layer.is_multiple_of(2))?;
    let mut spec = DecoderSpec::llama(&config.without_biases())?;
    for (attention, window) in spec.attention_mut().zip(windows) {
        (attention.bias, attention.window) = (keys.qkv_bias.into(), window);
    }
    add_experts(config, &mut spec)?;
    Ok(spec)
}

/// Puts experts with a gated shared expert in place of the dense blocks, in the layers that the config names.
pub(super) fn add_experts(config: &ModelConfig, spec: &mut DecoderSpec) -> Result<()> {
    #[derive(Deserialize)]
    struct Keys {
        shared_expert_intermediate_size: usize,
    }
    let Keys { shared_expert_intermediate_size: inner } = config.read()?;
    qwen3_moe::add_experts(config, spec, |experts| {
        let shared = GatedSpec::beside(&experts, "shared_expert_intermediate_size", inner)?;
        Ok(Mlp::DenseAndMoe(shared, experts, DenseBranch::GatedShared))
    })
}
