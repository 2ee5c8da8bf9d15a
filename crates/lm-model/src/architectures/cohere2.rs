//! Cohere 2 (Command R7B, Command A): both blocks of a layer read one LayerNorm without a bias; windows in
//! three of four layers, which rotate heads in adjacent pairs, and no RoPE in the others (NoPE). Source:
//! Command A (arXiv 2504.00698); `config.json` of CohereLabs/c4ai-command-r7b-12-2024; `Cohere2Config` of
//! transformers for the defaults.

use lm_formats::{GgufEntry, Result};
use lm_kernels::RopePairing;
use serde::Deserialize;

use super::{Architecture, BASE};
use crate::config::{ModelConfig, invalid};
use crate::gguf::{GgufArchitecture, layer_types};
use crate::spec::{Bias, DecoderSpec, NormKind, NormPlacement, Window, windows};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["cohere2"],
    goldens: &["cohere2-tiny", "cohere2-tiny-bias", "cohere2-tiny-list"],
    spec,
    gguf: &[&GGUF],
    defaults: r#"{
        "max_position_embeddings": 8192, "layer_norm_eps": 1e-5, "rms_norm_eps": 1e-5, "logit_scale": 0.0625,
        "sliding_window": 4096, "sliding_window_pattern": 4, "tie_word_embeddings": true
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("attention.layer_norm_epsilon", "layer_norm_eps"),
        ("attention.sliding_window", "sliding_window"),
        ("logit_scale", "logit_scale"),
    ],
    read: |model, config| layer_types(model, config, 4).map(drop),
    write: |config, _, settings| {
        settings.put("rope.scaling.type", GgufEntry::Text("none".to_owned()));
        settings.put_size("rope.dimension_count", "head_dim", config.head_dim()?)
    },
    ..GgufArchitecture::new("cohere2", "cohere2")
};

/// Keys of this architecture alone.
#[derive(Deserialize)]
struct Keys {
    /// Interval of full-attention layers, where `layer_types` is absent.
    sliding_window_pattern: usize,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let Keys { sliding_window_pattern: interval } = config.read()?;
    if interval == 0 {
        return Err(invalid("sliding_window_pattern", interval, "a positive number"));
    }
    let windows = windows(config, config.sliding_window, |layer| !(layer + 1).is_multiple_of(interval))?;
    let mut spec = cohere(config)?;
    for (attention, window) in spec.attention_mut().zip(windows) {
        attention.window = window;
        attention.rope = attention.rope.filter(|_| window != Window::Full);
    }
    Ok(spec)
}

/// Keys of both generations.
#[derive(Deserialize)]
struct Shared {
    /// Factor on the logits.
    logit_scale: f64,
}

/// Builds what both generations have: parallel blocks with one LayerNorm, adjacent pairs, scaled logits.
pub(super) fn cohere(config: &ModelConfig) -> Result<DecoderSpec> {
    let Shared { logit_scale } = config.read()?;
    if !(logit_scale.is_finite() && logit_scale > 0.0) {
        return Err(invalid("logit_scale", logit_scale, "a positive number"));
    }
    let config = &ModelConfig { mlp_bias: false, ..config.with_norm_eps("layer_norm_eps")? };
    let mut spec = DecoderSpec::llama(config)?;
    spec.norm_kind = NormKind::Layer(Bias::Absent);
    spec.logit_scale = Some(logit_scale as f32);
    spec.ropes.iter_mut().for_each(|rope| rope.pairing = RopePairing::Adjacent);
    spec.layers.iter_mut().for_each(|layer| layer.norms = NormPlacement::Parallel);
    Ok(spec)
}
