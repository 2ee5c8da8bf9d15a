//! Metadata of a model under GGUF keys: the inverse of `super::super::config`.

use lm_formats::{GgufEntry, Result};
use serde::Deserialize;
use serde_json::Value;

use super::key_types::written;
use crate::config::{ModelConfig, RopeParameters, invalid, json_error};
use crate::gguf::rope::{ROPE_SECTIONS, yarn_magnitude};
use crate::gguf::{GgufArchitecture, RopeLayout, SHARED, Settings};
use crate::spec::{DecoderSpec, NormKind, RopeScaling, RopeSpec};

/// Config.json key of the epsilon of RMS norms.
const RMS_EPS: &str = "rms_norm_eps";

/// Config.json keys that newer files store elsewhere, with precedence: their JSON pointers.
const JSON_POINTERS: &[(&str, &[&str])] = &[
    ("llama_4_scaling_beta", &["/rope_parameters/llama_4_scaling_beta"]),
    ("rope_local_base_freq", &["/rope_parameters/sliding_attention/rope_theta"]),
    ("rope_theta", &["/rope_parameters/rope_theta", "/rope_parameters/full_attention/rope_theta"]),
];

/// Builds the metadata of a model; [`super::check`] verifies that it is complete.
pub(super) fn settings(
    config: &ModelConfig,
    spec: &DecoderSpec,
    architecture: &GgufArchitecture,
) -> Result<Settings> {
    let name = architecture.name;
    let mut settings = Settings::new(name);
    settings.put_size("block_count", "num_hidden_layers", spec.layers.len())?;
    settings.put_size("vocab_size", "vocab_size", spec.vocab_size)?;
    if spec.attention().next().is_some() {
        for key in ["attention.key_length", "attention.value_length"] {
            settings.put_size(key, "head_dim", config.head_dim()?)?;
        }
    }
    // The default of the key that is not theirs.
    let is_read = |row: &&(&str, &str)| row.1 != RMS_EPS || spec.norm_kind == NormKind::Rms;
    for (key, from) in SHARED.iter().filter(is_read).chain(architecture.keys) {
        if let Some(value) = find(config, from) {
            let invalid = || invalid(from, &value, format!("a value for {name}.{key}"));
            settings.put(key, written(key, &value).ok_or_else(invalid)?);
        }
    }
    put_layers(spec, &mut settings)?;
    if let Some(rope) = spec.ropes.first() {
        if spec.ropes.len() == 1 && architecture.rope_layout == RopeLayout::Interleaved
            || !is_full_rotary(spec, rope)
        {
            settings.put_size("rope.dimension_count", "head_dim", rope.rotary_dim)?;
        }
        for (key, value) in scaling(&rope_parameters(config)?, rope)? {
            settings.put(&format!("rope.scaling.{key}"), value);
        }
        if let Some(sections) = rope.axes.sections() {
            let [temporal, height, width] = sections.map(|pairs| pairs as i32);
            settings.put(ROPE_SECTIONS, GgufEntry::Ints(vec![temporal, height, width, 0]));
        }
        vectors_of(rope).into_iter().for_each(|(name, values)| settings.put_vector(name, values));
    }
    (architecture.write)(config, spec, &mut settings)?;
    Ok(settings)
}

/// Writes the sizes that may differ between layers.
fn put_layers(spec: &DecoderSpec, settings: &mut Settings) -> Result<()> {
    let widths: Vec<_> = spec.layers.iter().filter_map(|layer| layer.mlp.dense_width()).collect();
    if widths.len() == spec.layers.len() {
        settings.put_sizes("feed_forward_length", "intermediate_size", &widths)?;
    }
    let heads: Vec<_> = spec.attention().map(|attention| attention.num_kv_heads).collect();
    if !heads.is_empty() {
        settings.put_sizes("attention.head_count_kv", "num_key_value_heads", &heads)?;
    }
    Ok(())
}

/// Returns true if RoPE rotates whole heads (no partial rotary).
fn is_full_rotary(spec: &DecoderSpec, rope: &RopeSpec) -> bool {
    spec.attention().all(|attention| attention.head_dim == rope.rotary_dim || spec.ropes.len() > 1)
}

/// Returns the value of a config.json key, wherever it is stored.
fn find(config: &ModelConfig, key: &str) -> Option<Value> {
    let pointers = JSON_POINTERS.iter().filter(|row| row.0 == key).flat_map(|row| row.1);
    let pointed = |pointer: &&str| {
        let (first, rest) = pointer.strip_prefix('/')?.split_once('/')?;
        config.keys.get(first)?.pointer(&format!("/{rest}")).filter(|value| !value.is_null())
    };
    let own = config.keys.get(key).filter(|value| !value.is_null());
    pointers.into_iter().find_map(pointed).or(own).cloned()
}

/// Returns the RoPE parameters; those of full-attention layers if each layer type has its own.
fn rope_parameters(config: &ModelConfig) -> Result<RopeParameters> {
    let (_, parameters) = config.rope_parameters();
    match parameters.rest.get("full_attention") {
        Some(of_kind) => RopeParameters::deserialize(of_kind).map_err(json_error),
        None => Ok(parameters),
    }
}

/// Builds the keys under `rope.scaling`.
fn scaling(parameters: &RopeParameters, rope: &RopeSpec) -> Result<Vec<(&'static str, GgufEntry)>> {
    let float = |value: f64| GgufEntry::Float(value as f32);
    let kind = |name: &str| ("type", GgufEntry::Text(name.to_owned()));
    let mut entries = Vec::new();
    match rope.scaling {
        RopeScaling::Linear { factor } => {
            entries.extend([kind("linear"), ("factor", float(factor))]);
        }
        RopeScaling::Yarn { factor, context, attention_factor, .. } => {
            let context = crate::gguf::settings::size("original_max_position_embeddings", context as usize)?;
            entries.extend([kind("yarn"), ("factor", float(factor)), ("original_context_length", context)]);
            // Readers multiply the computed factor by this one; they cannot replace it.
            let follows = yarn_magnitude(factor, parameters.mscale_all_dim.filter(|all| *all != 0.0));
            let times = attention_factor / follows;
            let other = (times - 1.0).abs() > f64::from(f32::EPSILON);
            if other {
                entries.push(("attn_factor", float(times)));
            }
            let given = [
                ("yarn_attn_factor", parameters.attention_factor.filter(|_| !other)),
                ("yarn_beta_fast", parameters.beta_fast),
                ("yarn_beta_slow", parameters.beta_slow),
                ("yarn_log_multiplier", parameters.mscale_all_dim),
            ];
            entries.extend(given.into_iter().filter_map(|(key, value)| Some((key, float(value?)))));
        }
        RopeScaling::LongRope { context, attention_factor, .. } => {
            let context = crate::gguf::settings::size("original_max_position_embeddings", context)?;
            entries.extend([("original_context_length", context), ("attn_factor", float(attention_factor))]);
        }
        RopeScaling::None
        | RopeScaling::Proportional { .. }
        | RopeScaling::Dynamic { .. }
        | RopeScaling::Llama3 { .. } => {}
    }
    Ok(entries)
}

/// Frequency divisors that files store as tensors.
fn vectors_of(rope: &RopeSpec) -> Vec<(&'static str, Vec<f32>)> {
    let narrow = |divisors: &[f64]| divisors.iter().map(|&divisor| divisor as f32).collect();
    match &rope.scaling {
        RopeScaling::LongRope { short, long, .. } => {
            vec![("rope_factors_long.weight", narrow(long)), ("rope_factors_short.weight", narrow(short))]
        }
        RopeScaling::Llama3 { .. } => vec![("rope_freqs.weight", narrow(&rope.divisors()))],
        _ => Vec::new(),
    }
}
