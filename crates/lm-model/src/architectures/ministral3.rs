//! Ministral 3: Mistral with YaRN and queries scaled up with their position. The text model of the `mistral3`
//! checkpoints. Source: `config.json` of mistralai/Ministral-3-3B-Base-2512; `modeling_ministral3.py` of
//! transformers.

use lm_formats::Result;
use serde_json::Value;

use super::{Architecture, BASE, mistral};
use crate::config::{ModelConfig, invalid};
use crate::gguf::{GgufArchitecture, RopeLayout};
use crate::spec::{DecoderSpec, QueryTemperature, RopeSpec};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["ministral3"],
    goldens: &["ministral3-tiny", "ministral3-tiny-window", "ministral3-tiny-vision"],
    spec,
    ignored_prefixes: mistral::ARCHITECTURE.ignored_prefixes,
    gguf: &[&GGUF],
    defaults: r#"{
        "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 262144,
        "rope_parameters": {
            "rope_type": "yarn", "rope_theta": 1000000.0, "factor": 16.0, "original_max_position_embeddings": 16384,
            "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1
        }
    }"#,
    ..BASE
};

/// Name of files of Ministral 3, which scales queries by position, and of the text models of Mistral Small 3,
/// which do not.
const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[("attention.temperature_scale", QUERY_SCALE_BETA)],
    rope_layout: RopeLayout::Interleaved,
    read: |_, config| {
        let beta = config.remove(QUERY_SCALE_BETA).filter(|beta| beta.as_f64() != Some(0.0));
        match (beta, config.get_mut("rope_parameters").and_then(Value::as_object_mut)) {
            (Some(beta), Some(rope)) => drop(rope.insert(QUERY_SCALE_BETA.to_owned(), beta)),
            _ => {
                config.insert("model_type".to_owned(), "mistral".into());
                config.insert("sliding_window".to_owned(), Value::Null);
            }
        }
        Ok(())
    },
    ..GgufArchitecture::new("mistral3", "ministral3")
};

/// Coefficient of the position-dependent query scale.
const QUERY_SCALE_BETA: &str = "llama_4_scaling_beta";

const BETA: &str = "llama_4_scaling_beta";

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let (key, mut parameters) = config.rope_parameters();
    let beta = parameters.rest.remove(BETA);
    parameters.rest.remove("max_position_embeddings"); // A copy of the config's.
    let Some(beta) = beta.as_ref().and_then(|beta| beta.as_f64()).filter(|beta| *beta >= 0.0) else {
        let value = beta.map_or("absent".to_owned(), |beta| beta.to_string());
        return Err(invalid(&format!("{key}.{BETA}"), value, "0 or a positive number"));
    };
    // A value that is not a number above 1 fails the load in the RoPE parser below.
    let context =
        parameters.original_max_position_embeddings.unwrap_or(config.max_position_embeddings as f64);
    let mut spec = mistral::spec(&config.without_rope())?;
    let (head_dim, context_len) = (config.head_dim()?, config.max_position_embeddings);
    let rope = RopeSpec::from_parameters(key, &parameters, head_dim, context_len)?;
    spec.context_len = rope.context_len(context_len);
    spec.ropes = vec![RopeSpec { query_temperature: Some(QueryTemperature { beta, context }), ..rope }];
    Ok(spec)
}
