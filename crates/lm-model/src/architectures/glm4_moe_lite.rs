//! GLM-4.7-Flash: the latent attention of DeepSeek-V3 and the experts of GLM-4.5. Source: `config.json` of
//! zai-org/GLM-4.7-Flash; `modeling_glm4_moe_lite.py` and `Glm4MoeLiteConfig` of transformers 5.23.

use lm_formats::Result;
use serde::Deserialize;

use super::deepseek;
use super::{Architecture, BASE};
use crate::config::{ModelConfig, invalid, unsupported};
use crate::spec::DecoderSpec;
use crate::spec::deepseek_moe::{RouterKind, experts, weight_name};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["glm4_moe_lite"],
    goldens: &["glm4-moe-lite-tiny", "glm4-moe-lite-tiny-direct", "glm4-moe-lite-tiny-types"],
    spec,
    weight_name,
    locations: deepseek::locations,
    layers_ahead: true,
    gguf: &[&deepseek::GGUF],
    defaults: r#"{
        "vocab_size": 154880, "hidden_size": 2048, "intermediate_size": 10240, "num_hidden_layers": 47,
        "num_attention_heads": 20, "max_position_embeddings": 202752, "rms_norm_eps": 1e-5, "kv_lora_rank": 512,
        "q_lora_rank": 768, "qk_rope_head_dim": 64, "qk_nope_head_dim": 192, "v_head_dim": 256,
        "rope_interleave": true, "moe_intermediate_size": 1536, "n_routed_experts": 64, "n_shared_experts": 1,
        "num_experts_per_tok": 4, "n_group": 1, "topk_group": 1, "norm_topk_prob": true,
        "routed_scaling_factor": 1.8
    }"#,
    ..BASE
};

/// Keys that other models with these experts lack.
#[derive(Deserialize)]
struct Keys {
    /// Feed-forward block of each layer; dense in the first alone by default.
    mlp_layer_types: Option<Vec<String>>,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let Keys { mlp_layer_types: types } = config.read()?;
    let mut spec = deepseek::spec(config)?;
    let mlp = experts(config, RouterKind::Sigmoid)?;
    let count = spec.layers.len();
    if let Some(types) = types.as_ref().filter(|types| types.len() != count) {
        let expected = format!("num_hidden_layers = {count} entries");
        return Err(invalid("mlp_layer_types", format!("{} entries", types.len()), expected));
    }
    for (index, layer) in spec.layers.iter_mut().enumerate() {
        let sparse = match types.as_ref().map(|types| types[index].as_str()) {
            None => index > 0,
            Some("sparse") => true,
            Some("dense") => false,
            Some(other) => return Err(unsupported("mlp_layer_types", other, "dense, sparse")),
        };
        if sparse {
            layer.mlp = mlp.clone();
        }
    }
    Ok(spec)
}
