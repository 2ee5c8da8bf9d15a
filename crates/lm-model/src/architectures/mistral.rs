//! Mistral: Llama with the same sliding window on all layers, or none. Source: Mistral 7B (arXiv 2310.06825);
//! `config.json` of mistralai/Mistral-7B-v0.1 and -v0.3; `MistralConfig` of transformers for the defaults.

use lm_formats::Result;

use super::{Architecture, BASE, llama};
use crate::config::ModelConfig;
use crate::spec::{DecoderSpec, Window};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["mistral"],
    goldens: &["mistral-tiny", "mistral-tiny-full", "mistral-tiny-quick", "mistral-tiny-vision"],
    spec,
    ignored_prefixes: &["multi_modal_projector.", "vision_tower."],
    gguf: &[&llama::GGUF],
    defaults: r#"{"num_key_value_heads": 8, "sliding_window": 4096}"#,
    ..BASE
};

/// Builds a decoder whose layers all attend to `sliding_window` slots, or to all where that is null.
pub(super) fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let mut spec = DecoderSpec::llama(&config.without_biases())?;
    for attention in spec.attention_mut() {
        attention.window = config.sliding_window.map_or(Window::Full, Window::Sliding);
    }
    Ok(spec)
}
