//! Conversion of a GGUF model's metadata to config.json.

use lm_formats::Result;
use serde_json::{Map, Value, json};

use super::architectures::GgufArchitecture;
use super::description::Description;
use super::unused;

/// Settings of all architectures: GGUF key, config.json key.
pub(super) const SHARED: &[(&str, &str)] = &[
    ("attention.head_count", "num_attention_heads"),
    ("attention.head_count_kv", "num_key_value_heads"),
    ("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
    ("context_length", "max_position_embeddings"),
    ("embedding_length", "hidden_size"),
    ("feed_forward_length", "intermediate_size"),
    ("rope.freq_base", "rope_theta"),
];

/// Returns the keys of config.json that the metadata defines.
pub(super) fn config(model: &Description<'_>, architecture: &GgufArchitecture) -> Result<Map<String, Value>> {
    const CAUSAL: &str = "attention.causal";
    const VALUE_WIDTH: &str = "attention.value_length";
    if model.bool(CAUSAL)? == Some(false) {
        return Err(model.metadata.unsupported(&model.key(CAUSAL), false, "true"));
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
    put("tie_word_embeddings", model.tensor("output.weight").is_none().into());
    (architecture.rope)(model, &mut config)?;
    (architecture.more)(model, &mut config)?;
    if let Some(width) = model.size(VALUE_WIDTH)?.filter(|&width| width != head_dim) {
        let known = format!("{head_dim}, the width of keys");
        return Err(model.metadata.unsupported(&model.key(VALUE_WIDTH), width, known));
    }
    unused::refuse(model)?;
    Ok(config)
}

/// Writes `layer_types` and returns, for each layer, true if it has a sliding window. The file gives a list, or the interval of
/// full-attention layers (`period` where the key is absent).
pub(super) fn layer_types(
    model: &Description<'_>,
    config: &mut Map<String, Value>,
    period: usize,
) -> Result<Vec<bool>> {
    const KEY: &str = "attention.sliding_window_pattern";
    let slides = match model.flags(KEY)? {
        Some(slides) => slides,
        None => {
            let period = model.size(KEY)?.unwrap_or(period);
            (1..=model.num_layers()?).map(|layer| !layer.is_multiple_of(period)).collect()
        }
    };
    put_layer_types(config, &slides, ["sliding_attention", "full_attention"]);
    Ok(slides)
}

/// Writes `layer_types`: the first name for marked layers, the second for the others.
pub(super) fn put_layer_types(config: &mut Map<String, Value>, marked: &[bool], names: [&str; 2]) {
    let types: Vec<_> = marked.iter().map(|&marked| names[usize::from(!marked)]).collect();
    config.insert("layer_types".to_owned(), json!(types));
}
