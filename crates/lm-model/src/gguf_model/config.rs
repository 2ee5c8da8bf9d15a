//! Conversion of a GGUF model's metadata to config.json.

use lm_formats::Result;
use serde_json::{Map, Value};

use super::unused;
use crate::embedding_config::POOLING_TYPE;
use crate::gguf::{Description, GgufArchitecture, SHARED};
use crate::spec::Direction;

/// Returns the keys of config.json that the metadata defines.
pub(super) fn config(model: &Description<'_>, architecture: &GgufArchitecture) -> Result<Map<String, Value>> {
    const CAUSAL: &str = "attention.causal";
    const VALUE_WIDTH: &str = "attention.value_length";
    let (causal, expected) = (model.bool(CAUSAL)?, architecture.direction == Direction::Causal);
    if let Some(causal) = causal.filter(|&causal| causal != expected) {
        return Err(model.metadata.unsupported(&model.key(CAUSAL), causal, expected.to_string()));
    }
    let head_dim = model.head_dim()?;
    let mut config = Map::new();
    let mut put = |key: &str, value: Value| drop(config.insert(key.to_owned(), value));
    put("model_type", architecture.model_type.into());
    for (from, to) in SHARED.iter().chain(architecture.keys) {
        if let Some(value) = model.json(from)? {
            put(to, value);
        }
    }
    if !model.has("attention.head_count_kv") {
        put("num_key_value_heads", model.json("attention.head_count")?.unwrap_or_default());
    }
    put("num_hidden_layers", model.num_layers()?.into());
    put("head_dim", head_dim.into());
    // Padded vocabularies have more rows than tokens.
    if let Some((_, embedding)) = model.tensor("token_embd.weight") {
        put("vocab_size", embedding.shape[0].into());
    }
    if let Some(pooling) = model.size(POOLING_TYPE)? {
        put(POOLING_TYPE, pooling.into());
    }
    put("tie_word_embeddings", model.tensor("output.weight").is_none().into());
    (architecture.rope)(model, &mut config)?;
    (architecture.read)(model, &mut config)?;
    // Latent attention caches vectors whose first elements are the values.
    let values = model.size("attention.kv_lora_rank")?.unwrap_or(head_dim);
    if let Some(width) = model.size(VALUE_WIDTH)?.filter(|&width| width != values) {
        let known = format!("{values}");
        return Err(model.metadata.unsupported(&model.key(VALUE_WIDTH), width, known));
    }
    unused::reject(model)?;
    Ok(config)
}
