//! StableLM: Llama with LayerNorm and partial rotary, in 12B with parallel blocks and query and key norms.
//! Source: Stable LM 2 1.6B Technical Report (arXiv 2402.17834); `config.json` of stabilityai/stablelm-2-1_6b
//! and stablelm-2-12b; `StableLmConfig` of transformers for the defaults.

use lm_formats::{GgufEntry, Result};
use serde::Deserialize;

use super::{Architecture, BASE};
use crate::checkpoint::{LayerParam, Param, TensorLocation};
use crate::config::ModelConfig;
use crate::gguf::GgufArchitecture;
use crate::spec::{Bias, DecoderSpec, NormKind, NormPlacement, QkNorm};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["stablelm"],
    goldens: &["stablelm-tiny", "stablelm-tiny-norms", "stablelm-tiny-parallel", "stablelm-tiny-whole"],
    spec,
    locations,
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
    let config = config.with_norm_eps("layer_norm_eps")?.without_biases();
    let mut spec = DecoderSpec::partial_rotary(&config)?;
    spec.norm_kind = NormKind::Layer(Bias::Present);
    for attention in spec.attention_mut() {
        attention.bias = use_qkv_bias.into();
        attention.qk_norm = if qk_layernorm { QkNorm::EachHead } else { QkNorm::Absent };
    }
    if use_parallel_residual {
        spec.layers.iter_mut().for_each(|layer| layer.norms = NormPlacement::Parallel);
    }
    Ok(spec)
}

/// Norms of queries and keys have a tensor for each head.
fn locations(spec: &DecoderSpec, param: Param) -> Vec<TensorLocation> {
    let Param::Layer(layer, param) = param else { return Vec::new() };
    let Some(attention) = spec.layers[layer].mixer.attention() else { return Vec::new() };
    let norms = |module: &str, heads: usize| {
        let name = |head| format!("model.layers.{layer}.self_attn.{module}.norms.{head}.weight");
        vec![TensorLocation::stacked((0..heads).map(name))]
    };
    match param {
        LayerParam::QueryNorm => norms("q_layernorm", attention.num_heads),
        LayerParam::KeyNorm => norms("k_layernorm", attention.num_kv_heads),
        _ => Vec::new(),
    }
}
