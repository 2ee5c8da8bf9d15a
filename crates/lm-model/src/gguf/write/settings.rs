//! The settings of a model under the keys of GGUF files: `super::super::config`, the other way round.

use serde::Deserialize;
use serde_json::Value;

use super::super::architectures::GgufArchitecture;
use super::super::config::SHARED;
use super::key_types::written;
use super::metadata::{Entries, Written};
use crate::Result;
use crate::config::{ModelConfig, RopeParameters, invalid, json_error};
use crate::spec::{DecoderSpec, Mixer, RopeScaling, RopeSpec};

/// What a file says of a model beside its tokenizer and its weights.
pub(super) struct Settings {
    pub(super) entries: Entries,
    /// Tensors that are settings.
    pub(super) vectors: Vec<(&'static str, Vec<f32>)>,
}

/// Keys of config.json that newer files keep elsewhere: where `serde_json`'s pointers find them.
const ELSEWHERE: &[(&str, &[&str])] = &[
    ("llama_4_scaling_beta", &["/rope_parameters/llama_4_scaling_beta"]),
    ("rope_local_base_freq", &["/rope_parameters/sliding_attention/rope_theta"]),
    ("rope_theta", &["/rope_parameters/rope_theta", "/rope_parameters/full_attention/rope_theta"]),
];

/// The settings of a model; whether they say everything is for [`super::check`] to find out.
pub(super) fn settings(
    config: &ModelConfig,
    spec: &DecoderSpec,
    architecture: &GgufArchitecture,
) -> Result<Settings> {
    let mut settings = Settings { entries: Entries::default(), vectors: Vec::new() };
    let mut put = |key: &str, value| settings.entries.put(format!("{}.{key}", architecture.name), value);
    put("block_count", size("num_hidden_layers", spec.layers.len())?);
    put("vocab_size", size("vocab_size", spec.vocab_size)?);
    for key in ["attention.key_length", "attention.value_length"] {
        put(key, size("head_dim", config.head_dim()?)?);
    }
    for (key, from) in SHARED.iter().chain(architecture.keys) {
        if let Some(value) = find(config, from).filter(|value| !value.is_null()) {
            let expected = format!("a value for {}.{key}", architecture.name);
            put(key, written(key, &value).ok_or_else(|| invalid(from, &value, expected))?);
        }
    }
    if let Some(rope) = spec.ropes.first() {
        let parameters = rope_parameters(config)?;
        if spec.ropes.len() == 1 && has_attention(spec) {
            put("rope.dimension_count", size("head_dim", rope.rotary_dim)?);
        }
        for (key, value) in scaling(&parameters, rope)? {
            put(&format!("rope.scaling.{key}"), value);
        }
        settings.vectors = vectors(rope);
    }
    Ok(settings)
}

fn has_attention(spec: &DecoderSpec) -> bool {
    spec.layers.iter().any(|layer| matches!(layer.mixer, Mixer::Attention(_)))
}

/// The value of a key of config.json, wherever it is.
fn find(config: &ModelConfig, key: &str) -> Option<Value> {
    let own = config.keys.get(key).filter(|value| !value.is_null());
    let elsewhere = ELSEWHERE.iter().filter(|row| row.0 == key).flat_map(|row| row.1);
    let pointed = |pointer: &str| {
        let (first, rest) = pointer.strip_prefix('/')?.split_once('/')?;
        config.keys.get(first)?.pointer(&format!("/{rest}"))
    };
    own.or_else(|| elsewhere.copied().find_map(pointed)).cloned()
}

/// RoPE's parameters: those of layers with full attention, where each kind has its own.
fn rope_parameters(config: &ModelConfig) -> Result<RopeParameters> {
    let (_, parameters) = config.rope_parameters();
    match parameters.rest.get("full_attention") {
        Some(of_kind) => RopeParameters::deserialize(of_kind).map_err(json_error),
        None => Ok(parameters),
    }
}

/// The keys under `rope.scaling`.
fn scaling(parameters: &RopeParameters, rope: &RopeSpec) -> Result<Vec<(&'static str, Written)>> {
    let float = |value: f64| Written::Float(value as f32);
    let kind = |name: &str| ("type", Written::Text(name.to_owned()));
    let mut entries = Vec::new();
    match rope.scaling {
        RopeScaling::Linear { factor } => {
            entries.extend([kind("linear"), ("factor", float(factor))]);
        }
        RopeScaling::Yarn { factor, context, .. } => {
            let context = size("original_max_position_embeddings", context as usize)?;
            entries.extend([kind("yarn"), ("factor", float(factor)), ("original_context_length", context)]);
            let given = [
                ("yarn_attn_factor", parameters.attention_factor),
                ("yarn_beta_fast", parameters.beta_fast),
                ("yarn_beta_slow", parameters.beta_slow),
                ("yarn_log_multiplier", parameters.mscale_all_dim),
            ];
            entries.extend(given.into_iter().filter_map(|(key, value)| Some((key, float(value?)))));
        }
        RopeScaling::LongRope { context, attention_factor, .. } => {
            let context = size("original_max_position_embeddings", context)?;
            entries.extend([("original_context_length", context), ("attn_factor", float(attention_factor))]);
        }
        RopeScaling::None
        | RopeScaling::Proportional { .. }
        | RopeScaling::Dynamic { .. }
        | RopeScaling::Llama3 { .. } => {}
    }
    Ok(entries)
}

/// The divisors of frequencies that files keep as tensors.
fn vectors(rope: &RopeSpec) -> Vec<(&'static str, Vec<f32>)> {
    let narrow = |divisors: &[f64]| divisors.iter().map(|&divisor| divisor as f32).collect();
    match &rope.scaling {
        RopeScaling::LongRope { short, long, .. } => {
            vec![("rope_factors_long.weight", narrow(long)), ("rope_factors_short.weight", narrow(short))]
        }
        RopeScaling::Llama3 { .. } => vec![("rope_freqs.weight", narrow(&rope.divisors()))],
        _ => Vec::new(),
    }
}

fn size(key: &str, size: usize) -> Result<Written> {
    let small = u32::try_from(size).map_err(|_| invalid(key, size, "less than 4294967296"));
    small.map(Written::Size)
}
