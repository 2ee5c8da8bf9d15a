//! Qwen3 dense decoder: Llama with an RMS norm over each query and key head, and sliding windows on some layers.
//! Source: Qwen3 Technical Report (arXiv 2505.09388); `config.json` of Qwen/Qwen3-0.6B.

use super::{Architecture, WHOLE_TENSORS};
use crate::Result;
use crate::config::{ModelConfig, invalid, unsupported};
use crate::spec::{AttentionLayer, DecoderSpec, QkNorm, Window};
use crate::weights::hugging_face_name;

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["qwen3"],
    goldens: &["qwen3-tiny", "qwen3-tiny-window"],
    spec,
    weight_name: hugging_face_name,
    place: WHOLE_TENSORS,
    ignored_suffixes: &["rotary_emb.inv_freq"],
};

/// `head_dim` of transformers' `Qwen3Config` where a file leaves it out.
const DEFAULT_HEAD_DIM: usize = 128;

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let config = &ModelConfig {
        head_dim: config.head_dim.or(Some(DEFAULT_HEAD_DIM)),
        mlp_bias: false, // Not a key of Qwen3.
        ..config.clone()
    };
    let windows = windows(config)?;
    let mut spec = DecoderSpec::llama(config)?;
    for (attention, window) in spec.attention_mut().zip(windows) {
        *attention = AttentionLayer { qk_norm: QkNorm::PerHead, window, ..attention.clone() };
    }
    Ok(spec)
}

fn windows(config: &ModelConfig) -> Result<Vec<Window>> {
    let window = config.sliding_window.filter(|_| config.use_sliding_window);
    let Some(types) = &config.layer_types else {
        let first = config.max_window_layers.unwrap_or(usize::MAX);
        let of_layer = |layer| match window {
            Some(slots) if layer >= first => Window::Sliding(slots),
            _ => Window::Full,
        };
        return Ok((0..config.num_hidden_layers).map(of_layer).collect());
    };
    if types.len() != config.num_hidden_layers {
        let expected = format!("one for each of the {} layers", config.num_hidden_layers);
        return Err(invalid("layer_types", format!("a list of {}", types.len()), expected));
    }
    let of_type = |kind: &String| match (kind.as_str(), window) {
        ("full_attention", _) => Ok(Window::Full),
        ("sliding_attention", Some(slots)) => Ok(Window::Sliding(slots)),
        ("sliding_attention", None) => Err(invalid(
            "sliding_window",
            "absent or unused",
            "a number: `layer_types` has sliding_attention",
        )),
        (other, _) => Err(unsupported("layer_types", other, "full_attention, sliding_attention")),
    };
    types.iter().map(of_type).collect()
}
