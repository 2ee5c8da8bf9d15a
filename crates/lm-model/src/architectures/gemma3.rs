//! Gemma 3: Gemma 2 with QK norm in place of soft-capped scores, five sliding-window layers to each
//! full-attention layer, and separate RoPE parameters for the two. Also the text model of the multimodal
//! checkpoints, and FunctionGemma. Source: Gemma 3 Technical Report (arXiv 2503.19786); `config.json` of
//! google/gemma-3-270m and google/gemma-3-4b-it; `Gemma3TextConfig` of transformers for the defaults.

use lm_formats::Result;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::gemma2::{Keys, NORMS, NORMS_PLUS_ONE, gemma, put_gguf_defaults, weight_name};
use super::{Architecture, BASE};
use crate::config::{ModelConfig, invalid, unsupported};
use crate::gguf::rope::SlidingTheta;
use crate::gguf::{GgufArchitecture, layer_types, rope};
use crate::spec::{
    DecoderSpec, Direction, EncoderSpec, NormWeight, OutputHead, QkNorm, RopesByType, Window, windows,
};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["gemma3_text"],
    goldens: &["gemma3-tiny", "gemma3-tiny-vision", "gemma3-tiny-yarn"],
    spec,
    weight_name,
    ignored_prefixes: &[
        "model.multi_modal_projector.",
        "model.vision_tower.",
        "multi_modal_projector.",
        "vision_tower.",
    ],
    gguf: &[&GGUF, &GGUF_EMBEDDING],
    defaults: r#"{
        "vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-6, "tie_word_embeddings": true, "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": 256, "sliding_window": 4096, "sliding_window_pattern": 6
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("attention.sliding_window", "sliding_window"),
        ("final_logit_softcapping", "final_logit_softcapping"),
        ("rope.freq_base_swa", "rope_local_base_freq"),
    ],
    rope: |model, config| rope::by_layer_type(model, config, SlidingTheta::Default),
    read: |model, config| {
        layer_types(model, config, 6)?;
        remove_zero_soft_cap(config);
        put_gguf_defaults(model, config, GEMMA3_27B)
    },
    tensors: &[NORMS],
    values: NORMS_PLUS_ONE,
    ..GgufArchitecture::new("gemma3", "gemma3_text")
};

/// EmbeddingGemma.
const GGUF_EMBEDDING: GgufArchitecture = GgufArchitecture {
    name: "gemma-embedding",
    read: |model, config| {
        if model.tensor("dense_2.weight").is_some() {
            let known = "a file without the dense layers: the folder has them";
            return Err(model.metadata.unsupported("dense_2.weight", "a layer after the pooling", known));
        }
        config.insert("use_bidirectional_attention".to_owned(), true.into());
        (GGUF.read)(model, config)
    },
    direction: Direction::Bidirectional,
    ..GGUF
};

/// Removes a cap of 0 on the logits: llama.cpp reads it as no cap.
pub(super) fn remove_zero_soft_cap(config: &mut Map<String, Value>) {
    const KEY: &str = "final_logit_softcapping";
    if config.get(KEY).and_then(Value::as_f64) == Some(0.0) {
        config.insert(KEY.to_owned(), Value::Null);
    }
}

/// Layers of Gemma 3 27B.
const GEMMA3_27B: usize = 62;

/// RoPE bases (theta) of full-attention and sliding-window layers.
pub(super) const THETAS: [f64; 2] = [1_000_000.0, 10_000.0];

#[derive(Deserialize)]
struct Pattern {
    /// One layer in this many has full attention.
    sliding_window_pattern: usize,
    /// True for an encoder (EmbeddingGemma), whose window reaches half as far to both sides.
    use_bidirectional_attention: Option<bool>,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let (keys, Pattern { sliding_window_pattern: pattern, use_bidirectional_attention }) =
        (config.read::<Keys>()?, config.read()?);
    if pattern == 0 {
        return Err(invalid("sliding_window_pattern", pattern, "a positive number"));
    }
    if let Some(cap) = keys.attn_logit_softcapping {
        return Err(unsupported("attn_logit_softcapping", cap, "null"));
    }
    let ropes = RopesByType::from_config(config, THETAS)?;
    let windows = windows(config, config.sliding_window, |layer| !(layer + 1).is_multiple_of(pattern))?;
    let mut spec = gemma(&config.without_rope(), &keys)?;
    for (attention, window) in spec.attention_mut().zip(windows) {
        attention.qk_norm = QkNorm::PerHead;
        attention.window = window;
    }
    if use_bidirectional_attention == Some(true) {
        into_encoder(&mut spec);
    }
    ropes.apply(&mut spec)?;
    spec.norm_weight = NormWeight::OnePlus;
    Ok(spec)
}

/// Turns the decoder into an encoder.
fn into_encoder(spec: &mut DecoderSpec) {
    for attention in spec.attention_mut() {
        if let Window::Sliding(slots) = attention.window {
            attention.window = Window::Symmetric(slots / 2);
        }
    }
    spec.encoder = Some(EncoderSpec::PLAIN);
    spec.output_head = OutputHead::Absent;
}
