//! Llama (also Mistral, under the same name) and close relatives.

use lm_formats::GgufEntry;
use serde_json::{Map, Value, json};

use super::super::config::layer_types;
use super::super::description::Description;
use super::super::rope::{self, SlidingTheta};
use super::gemma3n::put_windows;
use super::{GgufArchitecture, RopeLayout};
use crate::spec::{LayerSpec, Mixer, Window};

pub(super) const LLAMA: GgufArchitecture = GgufArchitecture {
    also: &["mistral"],
    rope_layout: RopeLayout::Interleaved,
    more: |model, config| {
        biases(model, config);
        Ok(())
    },
    ..GgufArchitecture::new("llama", "llama")
};

pub(super) const GRANITE: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("attention.scale", "attention_multiplier"),
        ("embedding_scale", "embedding_multiplier"),
        ("logit_scale", "logits_scaling"),
        ("residual_scale", "residual_multiplier"),
    ],
    rope_layout: RopeLayout::Interleaved,
    more: |model, config| {
        const FINETUNED: &str = "rope.scaling.finetuned";
        // Meaning of the key for this architecture only: RoPE is used.
        if model.bool(FINETUNED)? == Some(false) {
            return Err(model.metadata.unsupported(&model.key(FINETUNED), false, "true, or absent"));
        }
        biases(model, config);
        Ok(())
    },
    ..GgufArchitecture::new("granite", "granite")
};

/// Ministral 3, which scales queries by position, and the text models of Mistral Small 3, which do not.
pub(super) const MISTRAL3: GgufArchitecture = GgufArchitecture {
    keys: &[("attention.temperature_scale", QUERY_SCALE_BETA)],
    rope_layout: RopeLayout::Interleaved,
    more: |_, config| {
        let beta = config.remove(QUERY_SCALE_BETA).filter(|beta| beta.as_f64() != Some(0.0));
        match (beta, config.get_mut("rope_parameters").and_then(Value::as_object_mut)) {
            (Some(beta), Some(rope)) => drop(rope.insert(QUERY_SCALE_BETA.to_owned(), beta)),
            _ => {
                config.insert("model_type".to_owned(), "mistral".into());
                config.insert("sliding_window".to_owned(), Value::Null);
            }
        }
        Ok(())
    },
    ..GgufArchitecture::new("mistral3", "ministral3")
};

/// Coefficient of the position-dependent query scale.
const QUERY_SCALE_BETA: &str = "llama_4_scaling_beta";

pub(super) const SMOLLM3: GgufArchitecture = GgufArchitecture {
    rope_layout: RopeLayout::Interleaved,
    more: |model, config| {
        biases(model, config);
        // Every fourth layer has no RoPE; files do not contain this.
        let rope: Vec<u8> = (1..=model.num_layers()?).map(|layer| u8::from(layer % 4 != 0)).collect();
        config.insert("no_rope_layers".to_owned(), json!(rope));
        Ok(())
    },
    ..GgufArchitecture::new("smollm3", "smollm3")
};

/// OLMo 2, and OLMo 3 where there is a window.
pub(super) const OLMO2: GgufArchitecture = GgufArchitecture {
    also: &["olmo3"],
    keys: &[("attention.sliding_window", WINDOW)],
    more: |model, config| {
        biases(model, config);
        if config.get(WINDOW).is_none_or(|window| *window == 0) {
            config.remove(WINDOW);
            return Ok(());
        }
        config.insert("model_type".to_owned(), "olmo3".into());
        layer_types(model, config, 4)?;
        rope::by_layer_type(model, config, SlidingTheta::OfFullLayers)
    },
    write: |config, spec, settings| {
        if config.model_type == "olmo3" {
            put_windows(spec, settings);
        }
        let sliding_rope = |layer: &LayerSpec| match &layer.mixer {
            Mixer::Attention(attention) if attention.window != Window::Full => attention.rope,
            _ => None,
        };
        if let Some(rope) = spec.layers.iter().find_map(sliding_rope) {
            settings.put("rope.freq_base_swa", GgufEntry::Float(spec.ropes[rope].theta as f32));
        }
        Ok(())
    },
    tensors: &[&[
        ("post_attention_norm", "post_attention_layernorm"),
        ("post_ffw_norm", "post_feedforward_layernorm"),
    ]],
    ..GgufArchitecture::new("olmo2", "olmo2")
};

const WINDOW: &str = "sliding_window";

/// Sets the bias keys by the presence of the tensors.
fn biases(model: &Description<'_>, config: &mut Map<String, Value>) {
    for (tensor, key) in [("blk.0.attn_q.bias", "attention_bias"), ("blk.0.ffn_gate.bias", "mlp_bias")] {
        config.insert(key.to_owned(), model.tensor(tensor).is_some().into());
    }
}
