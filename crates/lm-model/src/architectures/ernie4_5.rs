//! ERNIE 4.5, dense: Llama with heads rotated in adjacent pairs, and one key for all biases. Source: ERNIE
//! 4.5 Technical Report (Baidu, 2025); `config.json` of baidu/ERNIE-4.5-0.3B-PT; `Ernie4_5Config` of
//! transformers for the defaults.

use lm_formats::Result;
use lm_kernels::RopePairing;
use serde::Deserialize;

use super::{Architecture, BASE};
use crate::config::ModelConfig;
use crate::gguf::GgufArchitecture;
use crate::spec::DecoderSpec;

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["ernie4_5"],
    goldens: &["ernie4_5-tiny", "ernie4_5-tiny-bias", "ernie4_5-tiny-yarn"],
    spec,
    gguf: &[&GGUF],
    defaults: r#"{
        "num_key_value_heads": 2, "head_dim": 128, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0, "use_bias": false, "tie_word_embeddings": true
    }"#,
    ..BASE
};

pub(super) const GGUF: GgufArchitecture = GgufArchitecture {
    read: |model, config| {
        let bias = model.tensor("blk.0.attn_q.bias").is_some();
        config.insert("use_bias".to_owned(), bias.into());
        Ok(())
    },
    ..GgufArchitecture::new("ernie4_5", "ernie4_5")
};

/// Keys of this architecture alone.
#[derive(Deserialize)]
struct Keys {
    /// True if all projections have a bias; null is false.
    use_bias: Option<bool>,
}

pub(super) fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let bias = config.read::<Keys>()?.use_bias.unwrap_or(false);
    let config = &ModelConfig { attention_bias: bias, mlp_bias: bias, ..config.clone() };
    let mut spec = DecoderSpec::llama(config)?;
    spec.ropes.iter_mut().for_each(|rope| rope.pairing = RopePairing::Adjacent);
    Ok(spec)
}
