//! Cohere (Command R, Command R+, Aya): Cohere 2 without windows, with RoPE in all layers, and in Command R+
//! with query and key norms. Source: `config.json` of CohereLabs/aya-expanse-8b and c4ai-command-r-plus;
//! `CohereConfig` of transformers for the defaults.

use lm_formats::{GgufEntry, Result};
use serde::Deserialize;

use super::{Architecture, BASE, cohere2};
use crate::config::ModelConfig;
use crate::gguf::{GgufArchitecture, put_biases};
use crate::spec::{DecoderSpec, QkNorm};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["cohere"],
    goldens: &["cohere-tiny", "cohere-tiny-bias", "cohere-tiny-norms", "cohere-tiny-yarn"],
    spec,
    gguf: &[&GGUF],
    defaults: r#"{
        "max_position_embeddings": 8192, "layer_norm_eps": 1e-5, "rms_norm_eps": 1e-5, "logit_scale": 0.0625,
        "use_qk_norm": false, "tie_word_embeddings": true
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[("attention.layer_norm_epsilon", "layer_norm_eps"), ("logit_scale", "logit_scale")],
    read: |model, config| {
        put_biases(model, config);
        let norms = model.tensor("blk.0.attn_q_norm.weight").is_some();
        config.insert(QK_NORM.to_owned(), norms.into());
        Ok(())
    },
    write: |_, _, settings| {
        settings.put("rope.scaling.type", GgufEntry::Text("none".to_owned()));
        Ok(())
    },
    ..GgufArchitecture::new("command-r", "cohere")
};

const QK_NORM: &str = "use_qk_norm";

/// Keys of this architecture alone.
#[derive(Deserialize)]
struct Keys {
    /// True if each query and key head has a norm of its own, as in Command R+; null is false.
    use_qk_norm: Option<bool>,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let mut spec = cohere2::cohere(config)?;
    if config.read::<Keys>()?.use_qk_norm == Some(true) {
        spec.attention_mut().for_each(|attention| attention.qk_norm = QkNorm::EachHead);
    }
    Ok(spec)
}
