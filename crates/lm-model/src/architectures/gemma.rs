//! Gemma: Llama with scaled embeddings, GeGLU, and norms whose weights are stored less one. Source: Gemma
//! (arXiv 2403.08295); `config.json` of google/gemma-2b; `GemmaConfig` of transformers for the defaults.

use lm_formats::Result;

use super::gemma2::{NORMS_PLUS_ONE, refuse_bidirectional};
use super::{Architecture, BASE};
use crate::config::ModelConfig;
use crate::gguf::{GgufArchitecture, put_biases};
use crate::spec::{DecoderSpec, NormWeight};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["gemma"],
    goldens: &["gemma-tiny", "gemma-tiny-bias", "gemma-tiny-legacy"],
    spec,
    gguf: &[&GGUF],
    defaults: r#"{
        "num_key_value_heads": 16, "head_dim": 256, "hidden_act": "gelu_pytorch_tanh", "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-6, "tie_word_embeddings": true
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    read: |model, config| {
        put_biases(model, config);
        Ok(())
    },
    values: NORMS_PLUS_ONE,
    ..GgufArchitecture::new("gemma", "gemma")
};

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    refuse_bidirectional(config)?;
    let mut config = ModelConfig { mlp_bias: false, ..config.clone() }; // Not a key of Gemma.
    // A name of early files; they were trained with the approximation.
    if config.hidden_act.as_deref() == Some("gelu") {
        config.hidden_act = Some("gelu_pytorch_tanh".to_owned());
    }
    let mut spec = DecoderSpec::llama(&config)?;
    spec.embedding_scale = Some((config.hidden_size as f64).sqrt() as f32);
    spec.norm_weight = NormWeight::OnePlus;
    Ok(spec)
}
