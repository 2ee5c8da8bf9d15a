//! Granite: Llama with multipliers on embeddings, attention scores, block outputs and logits. Source: Granite
//! 3.0 Language Models (IBM, 2024); `config.json` of ibm-granite/granite-3.3-2b-instruct;
//! `modeling_granite.py` of transformers.

use lm_formats::Result;
use serde::Deserialize;

use super::{Architecture, BASE};
use crate::config::{ModelConfig, invalid};
use crate::gguf::{GgufArchitecture, RopeLayout, put_biases};
use crate::spec::DecoderSpec;

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["granite"],
    goldens: &["granite-tiny", "granite-tiny-bias", "granite-tiny-relu"],
    spec,
    ignored_prefixes: &["encoder.", "model.encoder.", "model.projector.", "projector."],
    gguf: &[&GGUF],
    defaults: r#"{
        "embedding_multiplier": 1.0, "logits_scaling": 1.0, "residual_multiplier": 1.0, "attention_multiplier": 1.0
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture { keys: FACTORS, ..gguf("granite", "granite") };

/// GGUF keys of the factors.
pub(super) const FACTORS: &[(&str, &str)] = &[
    ("attention.scale", "attention_multiplier"),
    ("embedding_scale", "embedding_multiplier"),
    ("logit_scale", "logits_scaling"),
    ("residual_scale", "residual_multiplier"),
];

/// Rules for files of Granite's architectures, without keys and tensors.
pub(super) const fn gguf(name: &'static str, model_type: &'static str) -> GgufArchitecture {
    GgufArchitecture {
        rope_layout: RopeLayout::Interleaved,
        read: |model, config| {
            const FINETUNED: &str = "rope.scaling.finetuned";
            // Meaning of the key for these architectures only: RoPE is used.
            if model.bool(FINETUNED)? == Some(false) {
                return Err(model.metadata.unsupported(&model.key(FINETUNED), false, "true, or absent"));
            }
            put_biases(model, config);
            Ok(())
        },
        ..GgufArchitecture::new(name, model_type)
    }
}

#[derive(Deserialize)]
struct Keys {
    embedding_multiplier: f64,
    /// Divisor of the logits.
    logits_scaling: f64,
    residual_multiplier: f64,
    /// Scale of the attention scores, in place of the one derived from the head width.
    attention_multiplier: f64,
}

pub(super) fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    with_factors(config, DecoderSpec::llama(config)?)
}

/// Sets the factors of a config.
pub(super) fn with_factors(config: &ModelConfig, mut spec: DecoderSpec) -> Result<DecoderSpec> {
    let keys: Keys = config.read()?;
    spec.embedding_scale = Some(factor("embedding_multiplier", keys.embedding_multiplier)?);
    spec.residual_scale = Some(factor("residual_multiplier", keys.residual_multiplier)?);
    spec.logit_scale = Some(factor("logits_scaling", keys.logits_scaling)?.recip());
    let scale = factor("attention_multiplier", keys.attention_multiplier)?;
    spec.attention_mut().for_each(|attention| attention.scale = scale);
    Ok(spec)
}

fn factor(key: &str, value: f64) -> Result<f32> {
    let narrow = value as f32;
    if narrow.is_normal() && narrow > 0.0 {
        Ok(narrow)
    } else {
        Err(invalid(key, value, "a positive number"))
    }
}
