//! The settings of a model as config.json has them.

use serde_json::{Map, Value, json};

use super::architectures::GgufArchitecture;
use super::description::{Description, decimal};
use crate::Result;

/// Settings that all architectures share, under their keys in both files.
pub(super) const SHARED: &[(&str, &str)] = &[
    ("attention.head_count", "num_attention_heads"),
    ("attention.head_count_kv", "num_key_value_heads"),
    ("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
    ("context_length", "max_position_embeddings"),
    ("embedding_length", "hidden_size"),
    ("feed_forward_length", "intermediate_size"),
    ("rope.freq_base", "rope_theta"),
];

/// The keys of config.json that the metadata gives.
pub(super) fn config(model: &Description<'_>, architecture: &GgufArchitecture) -> Result<Map<String, Value>> {
    let causal = model.key("attention.causal");
    if model.metadata.bool(&causal)? == Some(false) {
        return Err(model.metadata.unsupported(&causal, false, "true"));
    }
    let mut config = Map::new();
    let mut put = |key: &str, value: Value| drop(config.insert(key.to_owned(), value));
    put("model_type", architecture.model_type.into());
    for (from, to) in SHARED.iter().chain(architecture.keys) {
        if let Some(value) = model.json(from)? {
            put(to, value);
        }
    }
    put("num_hidden_layers", model.num_layers()?.into());
    put("head_dim", model.head_dim()?.into());
    // Padded vocabularies have more rows than tokens.
    if let Some((_, embedding)) = model.tensor("token_embd.weight") {
        put("vocab_size", embedding.shape[0].into());
    }
    put("tie_word_embeddings", model.tensor("output.weight").is_none().into());
    if let Some(rotated) =
        model.size("rope.dimension_count")?.filter(|&rotated| Some(rotated) != model.head_dim().ok())
    {
        put("partial_rotary_factor", (rotated as f64 / model.head_dim()? as f64).into());
    }
    if let Some(scaling) = rope_scaling(model)? {
        put("rope_scaling", scaling);
    }
    (architecture.more)(model, &mut config)?;
    Ok(config)
}

/// The value of `rope_scaling`, where positions are scaled.
fn rope_scaling(model: &Description<'_>) -> Result<Option<Value>> {
    let kind = model.str("rope.scaling.type")?.unwrap_or("none");
    let mut scaling = Map::new();
    let mut put = |from: &str, to: &str| -> Result<()> {
        if let Some(value) = model.json(from)? {
            scaling.insert(to.to_owned(), value);
        }
        Ok(())
    };
    put("rope.scaling.factor", "factor")?;
    put("rope.scaling.original_context_length", "original_max_position_embeddings")?;
    match kind {
        "yarn" => {
            put("rope.scaling.yarn_attn_factor", "attention_factor")?;
            put("rope.scaling.yarn_beta_fast", "beta_fast")?;
            put("rope.scaling.yarn_beta_slow", "beta_slow")?;
            put("rope.scaling.yarn_log_multiplier", "mscale_all_dim")?;
        }
        "none" | "linear" | "longrope" => put("rope.scaling.attn_factor", "attention_factor")?,
        other => {
            return Err(model.metadata.unsupported(
                &model.key("rope.scaling.type"),
                other,
                "none, linear, yarn, longrope",
            ));
        }
    }
    let kind = match rope_factors(model)? {
        Some([short, long]) => {
            scaling.insert("short_factor".to_owned(), short);
            scaling.insert("long_factor".to_owned(), long);
            "longrope"
        }
        None if kind == "none" => return Ok(None),
        None => kind,
    };
    scaling.insert("rope_type".to_owned(), kind.into());
    Ok(Some(scaling.into()))
}

/// Divisors of the frequencies, for short and for long contexts.
fn rope_factors(model: &Description<'_>) -> Result<Option<[Value; 2]>> {
    let (short, long) =
        (factors(model, "rope_factors_short.weight")?, factors(model, "rope_factors_long.weight")?);
    Ok(short.zip(long).map(|(short, long)| [short, long]))
}

/// A tensor of factors as a list.
fn factors(model: &Description<'_>, name: &str) -> Result<Option<Value>> {
    let Some(factors) = model.vector(name)? else { return Ok(None) };
    let numbers: Option<Vec<_>> = factors.iter().map(|&factor| decimal(factor.into())).collect();
    let numbers = numbers.ok_or_else(|| model.metadata.invalid(name, "not finite", "finite numbers"))?;
    Ok(Some(json!(numbers)))
}

/// Says of each layer whether it slides, as the file does: by a list, or by every how many layers one does not (`period` where the
/// file is silent).
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

/// Writes `layer_types`: the first name for layers that are marked, the second for the others.
pub(super) fn put_layer_types(config: &mut Map<String, Value>, marked: &[bool], names: [&str; 2]) {
    let types: Vec<_> = marked.iter().map(|&marked| names[usize::from(!marked)]).collect();
    config.insert("layer_types".to_owned(), json!(types));
}

/// Takes over the divisors of the frequencies that stand for Llama 3's scaling, whose own settings files do not keep.
pub(super) fn frequency_divisors(model: &Description<'_>, config: &mut Map<String, Value>) -> Result<()> {
    if let Some(divisors) = factors(model, "rope_freqs.weight")? {
        let context = model.required_size("context_length")?;
        let scaling = json!({
            "rope_type": "longrope",
            "factor": 1.0,
            "attention_factor": 1.0,
            "original_max_position_embeddings": context,
            "short_factor": divisors,
            "long_factor": divisors,
        });
        config.insert("rope_scaling".to_owned(), scaling);
    }
    Ok(())
}
