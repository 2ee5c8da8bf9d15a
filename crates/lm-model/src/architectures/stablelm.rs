//! StableLM: Llama with LayerNorm and partial rotary, and parallel blocks in some sizes. Source: Stable LM 2
//! 1.6B Technical Report (arXiv 2402.17834); `config.json` of stabilityai/stablelm-2-1_6b; `StableLmConfig`
//! of transformers for the defaults.

use lm_formats::{GgufEntry, Result};
use serde::Deserialize;

use super::{Architecture, BASE};
use crate::config::{ModelConfig, unsupported};
use crate::gguf::GgufArchitecture;
use crate::spec::{Bias, DecoderSpec, NormKind, NormPlacement};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["stablelm"],
    goldens: &["stablelm-tiny", "stablelm-tiny-parallel", "stablelm-tiny-whole"],
    spec,
    gguf: &[&GGUF],
    defaults: r#"{
        "num_key_value_heads": 32, "max_position_embeddings": 4096, "layer_norm_eps": 1e-5, "rms_norm_eps": 1e-5,
        "partial_rotary_factor": 0.25, "use_qkv_bias": false, "qk_layernorm": false, "use_parallel_residual": false
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[("attention.layer_norm_epsilon", "layer_norm_eps")],
    read: |model, config| {
        // llama.cpp, too, goes by the tensor.
        model.bool(PARALLEL)?;
        let parallel = model.tensor("blk.0.ffn_norm.weight").is_none();
        config.insert(PARALLEL.to_owned(), parallel.into());
        let bias = model.tensor("blk.0.attn_q.bias").is_some();
        config.insert("use_qkv_bias".to_owned(), bias.into());
        let norms = model.tensor("blk.0.attn_q_norm.weight").is_some();
        config.insert("qk_layernorm".to_owned(), norms.into());
        Ok(())
    },
    write: |_, spec, settings| {
        let parallel = spec.layers.iter().any(|layer| layer.norms == NormPlacement::Parallel);
        settings.put(PARALLEL, GgufEntry::Bool(parallel));
        Ok(())
    },
    ..GgufArchitecture::new("stablelm", "stablelm")
};

const PARALLEL: &str = "use_parallel_residual";

/// Keys of this architecture alone.
#[derive(Deserialize)]
struct Keys {
    use_qkv_bias: bool,
    /// True if each query and key head has a norm of its own.
    qk_layernorm: bool,
    use_parallel_residual: bool,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let Keys { use_qkv_bias, qk_layernorm, use_parallel_residual } = config.read()?;
    if qk_layernorm {
        return Err(unsupported("qk_layernorm", true, "false"));
    }
    let config = config.with_norm_eps("layer_norm_eps")?.without_biases();
    let mut spec = DecoderSpec::partial_rotary(&config)?;
    spec.norm_kind = NormKind::Layer(Bias::Present);
    spec.attention_mut().for_each(|attention| attention.bias = use_qkv_bias.into());
    if use_parallel_residual {
        spec.layers.iter_mut().for_each(|layer| layer.norms = NormPlacement::Parallel);
    }
    Ok(spec)
}
