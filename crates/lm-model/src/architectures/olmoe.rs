//! OLMoE: Llama with experts in place of the feed-forward blocks, and QK norm over whole rows. Source: OLMoE
//! (arXiv 2409.02060); `config.json` of allenai/OLMoE-1B-7B-0924; `OlmoeConfig` of transformers for the
//! defaults.

use lm_formats::Result;
use serde::Deserialize;

use super::{Architecture, BASE, mixtral};
use crate::config::{ModelConfig, unsupported};
use crate::gguf::{EXPERTS, GgufArchitecture, put_biases};
use crate::spec::expert_tensors::{self, PROJECTIONS};
use crate::spec::{DecoderSpec, Mlp, QkNorm, RouterSpec};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["olmoe"],
    goldens: &["olmoe-tiny", "olmoe-tiny-bias", "olmoe-tiny-gqa"],
    spec,
    locations: |spec, param| expert_tensors::one_tensor_each(spec, param, "mlp.experts", PROJECTIONS),
    gguf: &[&GGUF],
    defaults: r#"{
        "vocab_size": 50304, "hidden_size": 2048, "intermediate_size": 2048, "num_hidden_layers": 16,
        "num_attention_heads": 16, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "num_experts": 64,
        "num_experts_per_tok": 8
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[("expert_count", "num_experts"), ("expert_used_count", "num_experts_per_tok")],
    read: |model, config| {
        put_biases(model, config);
        Ok(())
    },
    tensors: &[EXPERTS, &[("ffn_gate_inp", "mlp.gate")]],
    ..GgufArchitecture::new("olmoe", "olmoe")
};

#[derive(Deserialize)]
struct Keys {
    #[serde(default)]
    norm_topk_prob: bool,
    /// Bound of queries, keys and values.
    clip_qkv: Option<f64>,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let keys: Keys = config.read()?;
    if let Some(bound) = keys.clip_qkv {
        return Err(unsupported("clip_qkv", bound, "null"));
    }
    let mut spec = DecoderSpec::llama(&ModelConfig { mlp_bias: false, ..config.clone() })?; // Not a key of OLMoE.
    spec.attention_mut().for_each(|attention| attention.qk_norm = QkNorm::WholeRow);
    let experts = mixtral::expert_spec(config, RouterSpec::softmax(keys.norm_topk_prob))?;
    spec.layers.iter_mut().for_each(|layer| layer.mlp = Mlp::Experts(experts.clone()));
    Ok(spec)
}
