//! OLMo 2: Llama with post-norm in place of pre-norm, and QK norm over whole rows. Source: 2 OLMo 2 Furious
//! (arXiv 2501.00656); `config.json` of allenai/OLMo-2-1124-7B; `modeling_olmo2.py` of transformers.

use lm_formats::{GgufEntry, Result};

use super::{Architecture, BASE};
use crate::config::ModelConfig;
use crate::gguf::rope::SlidingTheta;
use crate::gguf::{GgufArchitecture, layer_types, put_biases, rope};
use crate::spec::{DecoderSpec, LayerSpec, Mixer, NormPlacement, QkNorm, Window};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["olmo2"],
    goldens: &["olmo2-tiny", "olmo2-tiny-gqa", "olmo2-tiny-yarn"],
    spec,
    gguf: &[&GGUF],
    defaults: r#"{"rms_norm_eps": 1e-5}"#,
    ..BASE
};

/// Name of files of OLMo 2, and of OLMo 3 where there is a window.
pub(super) const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[("attention.sliding_window", WINDOW)],
    read: |model, config| {
        put_biases(model, config);
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
            settings.put_windows(spec);
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

/// Builds Llama's decoder with post-norm, and QK norm over whole rows.
pub(super) fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let config = &ModelConfig { mlp_bias: false, ..config.clone() }; // Not a key of OLMo 2.
    let mut spec = DecoderSpec::llama(config)?;
    spec.layers.iter_mut().for_each(|layer| layer.norms = NormPlacement::Post);
    spec.attention_mut().for_each(|attention| attention.qk_norm = QkNorm::WholeRow);
    Ok(spec)
}
