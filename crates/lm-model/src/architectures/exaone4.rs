//! EXAONE 4: norms after the blocks and over each query and key head; in models with windows, full-attention
//! layers have no RoPE (NoPE). Source: EXAONE 4.0 (arXiv 2507.11407); `config.json` of
//! LGAI-EXAONE/EXAONE-4.0-1.2B and -32B; `Exaone4Config` of transformers for the defaults.

use lm_formats::Result;
use serde::Deserialize;
use serde_json::Value;

use super::{Architecture, BASE};
use crate::config::{ModelConfig, unsupported};
use crate::gguf::{GgufArchitecture, layer_types};
use crate::spec::{DecoderSpec, NormPlacement, QkNorm, Window, windows};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["exaone4"],
    goldens: &["exaone4-tiny", "exaone4-tiny-full", "exaone4-tiny-list"],
    spec,
    gguf: &[&GGUF],
    defaults: r#"{
        "num_key_value_heads": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "sliding_window": 4096,
        "sliding_window_pattern": 4
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[("attention.sliding_window", WINDOW)],
    read: |model, config| {
        if config.get(WINDOW).is_none_or(|window| *window == 0) {
            config.insert(WINDOW.to_owned(), Value::Null);
            return Ok(());
        }
        layer_types(model, config, 4).map(drop)
    },
    write: |_, spec, settings| {
        if spec.layers.iter().any(|layer| layer.mixer.window() != Window::Full) {
            settings.put_windows(spec);
        }
        Ok(())
    },
    tensors: &[&[
        ("post_attention_norm", "post_attention_layernorm"),
        ("post_ffw_norm", "post_feedforward_layernorm"),
    ]],
    ..GgufArchitecture::new("exaone4", "exaone4")
};

const WINDOW: &str = "sliding_window";

/// Keys of this architecture alone.
#[derive(Deserialize)]
struct Keys {
    /// Interval of full-attention layers, where `layer_types` is absent.
    sliding_window_pattern: Value,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    const PATTERN: &str = "sliding_window_pattern";
    let Keys { sliding_window_pattern: pattern } = config.read()?;
    let interval = match pattern.as_u64() {
        Some(interval @ 1..) => interval,
        _ if config.layer_types.is_some() || config.sliding_window.is_none() => 1,
        _ => return Err(unsupported(PATTERN, pattern, "a positive number, or any value beside layer_types")),
    };
    let windows =
        windows(config, config.sliding_window, |layer| !(layer as u64 + 1).is_multiple_of(interval))?;
    let mut spec = DecoderSpec::llama(&config.without_biases())?;
    spec.layers.iter_mut().for_each(|layer| layer.norms = NormPlacement::Post);
    for (attention, window) in spec.attention_mut().zip(windows) {
        (attention.qk_norm, attention.window) = (QkNorm::PerHead, window);
        let rotates = config.sliding_window.is_none() || window != Window::Full;
        attention.rope = attention.rope.filter(|_| rotates);
    }
    Ok(spec)
}
