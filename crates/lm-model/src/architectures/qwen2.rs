//! Qwen2 and Qwen2.5: Llama with biases on queries, keys and values, and sliding windows on some layers. The
//! text models of Qwen2-VL and Qwen2.5-VL, with M-RoPE. Source: Qwen2.5 Technical Report (arXiv 2412.15115);
//! `config.json` of Qwen/Qwen2.5-0.5B; `Qwen2Config` of transformers for the defaults.

use lm_formats::Result;

use super::{Architecture, BASE};
use crate::config::ModelConfig;
use crate::gguf::{GgufArchitecture, rope};
use crate::spec::{Bias, DecoderSpec, RopeAxes, windows};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"],
    goldens: &["qwen2-tiny", "qwen2-tiny-yarn", "qwen2-tiny-list"],
    spec,
    ignored_prefixes: &["model.visual.", "visual."],
    gguf: &[&GGUF, &GGUF_VL],
    defaults: r#"{"num_key_value_heads": 32, "sliding_window": 4096, "max_window_layers": 28}"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture::new("qwen2", "qwen2");

/// Text models of Qwen2-VL and Qwen2.5-VL.
const GGUF_VL: GgufArchitecture = GgufArchitecture {
    written_for: &["qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"],
    rope: rope::with_sections,
    ..GgufArchitecture::new("qwen2vl", "qwen2_vl")
};

/// `mrope_section` of the vision models where a file omits it.
const SECTIONS: [usize; 3] = [16, 24, 24];

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    match &*config.model_type {
        "qwen2" => text_spec(config),
        _ => DecoderSpec::with_mrope(config, text_spec, RopeAxes::Sections, SECTIONS),
    }
}

fn text_spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let window = config.sliding_window.filter(|_| config.use_sliding_window);
    let first = config.max_window_layers.unwrap_or(usize::MAX);
    let windows = windows(config, window, |layer| layer >= first)?;
    let mut spec = DecoderSpec::llama(&config.without_biases())?;
    for (attention, window) in spec.attention_mut().zip(windows) {
        (attention.bias, attention.window) = (Bias::Present, window);
    }
    Ok(spec)
}
