//! Seed-OSS: Llama with biases on queries, keys and values, and wide heads. Source: `config.json` of
//! ByteDance-Seed/Seed-OSS-36B-Instruct; `SeedOssConfig` of transformers for the defaults.

use lm_formats::Result;
use serde::Deserialize;

use super::{Architecture, BASE};
use crate::config::ModelConfig;
use crate::gguf::{GgufArchitecture, put_biases};
use crate::spec::DecoderSpec;

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["seed_oss"],
    goldens: &["seed-oss-tiny", "seed-oss-tiny-bias", "seed-oss-tiny-yarn"],
    spec,
    gguf: &[&GGUF],
    defaults: r#"{
        "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 524288, "rms_norm_eps": 1e-6,
        "attention_bias": true, "attention_out_bias": false
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    read: |model, config| {
        put_biases(model, config);
        let output_bias = model.tensor("blk.0.attn_output.bias").is_some();
        config.insert("attention_out_bias".to_owned(), output_bias.into());
        Ok(())
    },
    tensors: &[&[("post_attention_norm", "post_attention_layernorm")]],
    ..GgufArchitecture::new("seed_oss", "seed_oss")
};

/// Keys of this architecture alone.
#[derive(Deserialize)]
struct Keys {
    /// True if the output projection of attention has a bias.
    attention_out_bias: bool,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let Keys { attention_out_bias } = config.read()?;
    let mut spec = DecoderSpec::llama(config)?;
    spec.attention_mut().for_each(|attention| attention.output_bias = attention_out_bias.into());
    Ok(spec)
}
