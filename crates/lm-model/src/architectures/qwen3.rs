//! Qwen3 dense decoder: Llama with an RMS norm over each query and key head, and sliding windows on some
//! layers. The text model of Qwen3-VL, with M-RoPE. Source: Qwen3 Technical Report (arXiv 2505.09388);
//! `config.json` of Qwen/Qwen3-0.6B.

use lm_formats::Result;
use serde_json::Value;

use super::{Architecture, BASE};
use crate::config::ModelConfig;
use crate::gguf::{GgufArchitecture, rope};
use crate::spec::{AttentionLayer, DecoderSpec, QkNorm, RopeAxes, windows};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["qwen3", "qwen3_vl_text"],
    goldens: &["qwen3-tiny", "qwen3-tiny-fp8", "qwen3-tiny-window", "qwen3-tiny-yarn"],
    spec,
    ignored_prefixes: &["model.visual."],
    gguf: &[&GGUF, &GGUF_VL],
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    read: |model, config| {
        let bias = model.tensor("blk.0.attn_q.bias").is_some();
        config.insert("attention_bias".to_owned(), bias.into());
        Ok(())
    },
    ..GgufArchitecture::new("qwen3", "qwen3")
};

/// Text model of Qwen3-VL.
const GGUF_VL: GgufArchitecture = GgufArchitecture {
    written_for: &["qwen3_vl_text"],
    read: GGUF.read,
    write: |config, _, settings| {
        let deep = config.keys.get("vision_config").and_then(|vision| vision.get("deepstack_visual_indexes"));
        let layers = deep.and_then(Value::as_array).map_or(0, Vec::len);
        settings.put_size("n_deepstack_layers", "deepstack_visual_indexes", layers)
    },
    rope: rope::with_sections,
    ..GgufArchitecture::new("qwen3vl", "qwen3_vl_text")
};

/// `head_dim` of transformers' `Qwen3Config` where a file omits it.
const DEFAULT_HEAD_DIM: usize = 128;

/// `mrope_section` of Qwen3-VL where a file omits it.
const SECTIONS: [usize; 3] = [24, 20, 20];

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    match &*config.model_type {
        "qwen3" => text_spec(config),
        _ => DecoderSpec::with_mrope(config, text_spec, RopeAxes::Interleaved, SECTIONS),
    }
}

fn text_spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let config = &ModelConfig {
        head_dim: config.head_dim.or(Some(DEFAULT_HEAD_DIM)),
        mlp_bias: false, // Not a key of Qwen3.
        ..config.clone()
    };
    let window = config.sliding_window.filter(|_| config.use_sliding_window);
    let first = config.max_window_layers.unwrap_or(usize::MAX);
    let windows = windows(config, window, |layer| layer >= first)?;
    let mut spec = DecoderSpec::llama(config)?;
    for (attention, window) in spec.attention_mut().zip(windows) {
        *attention = AttentionLayer { qk_norm: QkNorm::PerHead, window, ..attention.clone() };
    }
    Ok(spec)
}
