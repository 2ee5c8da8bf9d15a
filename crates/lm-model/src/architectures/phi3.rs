//! Phi-3, Phi-3.5 and Phi-4-mini: Llama with fused projections, a sliding window, partial rotary and
//! LongRoPE. Source: Phi-3 Technical Report (arXiv 2404.14219); `config.json` of
//! microsoft/Phi-3.5-mini-instruct and microsoft/Phi-4-mini-instruct; `Phi3Config` of transformers for the
//! defaults.

use lm_formats::Result;

use super::{Architecture, BASE, mistral};
use crate::checkpoint::{LayerParam, Param, Piece, TensorLocation};
use crate::config::ModelConfig;
use crate::gguf::GgufArchitecture;
use crate::spec::{AttentionLayer, DecoderSpec, Mixer, RopeSpec};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["phi3"],
    goldens: &["phi3-tiny", "phi3-tiny-window", "phi3-tiny-long"],
    spec,
    locations,
    gguf: &[&GGUF],
    defaults: r#"{"max_position_embeddings": 4096, "original_max_position_embeddings": 4096}"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("attention.sliding_window", "sliding_window"),
        ("rope.scaling.original_context_length", "original_max_position_embeddings"),
    ],
    read: |model, config| {
        // The key takes precedence over the value among the RoPE parameters, and has a default.
        if !model.has("rope.scaling.original_context_length") {
            let context = model.required_size("context_length")?;
            config.insert("original_max_position_embeddings".to_owned(), context.into());
        }
        // 0 means no sliding window.
        if config.get("sliding_window").is_some_and(|window| *window == 0) {
            config.remove("sliding_window");
        }
        Ok(())
    },
    tensors: &[&[("attn_qkv", "self_attn.qkv_proj"), ("ffn_up", "mlp.gate_up_proj")]],
    ..GgufArchitecture::new("phi3", "phi3")
};

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let (key, mut parameters) = config.rope_parameters();
    if matches!(parameters.kind(), "su" | "yarn") {
        // Names of LongRoPE in earlier files of this model.
        (parameters.rope_type, parameters.legacy_type) = (Some("longrope".into()), None);
    }
    let mut spec = mistral::spec(&config.without_rope())?;
    let (head_dim, context_len) = (config.head_dim()?, config.max_position_embeddings);
    spec.ropes = vec![RopeSpec::from_parameters(key, &parameters, head_dim, context_len)?];
    Ok(spec)
}

/// Queries, keys and values are fused into one tensor, gate and up into another.
fn locations(spec: &DecoderSpec, param: Param) -> Vec<TensorLocation> {
    let Param::Layer(layer, param) = param else { return Vec::new() };
    let Mixer::Attention(attention) = &spec.layers[layer].mixer else { return Vec::new() };
    let [queries, keys] = AttentionLayer::widths(attention);
    let (tensor, rows, of) = match param {
        LayerParam::Query(Piece::Weight) => ("self_attn.qkv_proj", 0..queries, queries + 2 * keys),
        LayerParam::Key(Piece::Weight) => ("self_attn.qkv_proj", queries..queries + keys, queries + 2 * keys),
        LayerParam::Value(Piece::Weight) => {
            ("self_attn.qkv_proj", queries + keys..queries + 2 * keys, queries + 2 * keys)
        }
        _ => return fused_gate_and_up(spec, Param::Layer(layer, param)),
    };
    vec![TensorLocation::part(format!("model.layers.{layer}.{tensor}.weight"), rows, of)]
}

/// Location of gate and up where they are fused into one tensor.
pub(super) fn fused_gate_and_up(spec: &DecoderSpec, param: Param) -> Vec<TensorLocation> {
    let Param::Layer(layer, param) = param else { return Vec::new() };
    let Some(inner) = spec.layers[layer].mlp.dense_width() else { return Vec::new() };
    let rows = match param {
        LayerParam::Gate(Piece::Weight) => 0..inner,
        LayerParam::Up(Piece::Weight) => inner..2 * inner,
        _ => return Vec::new(),
    };
    vec![TensorLocation::part(format!("model.layers.{layer}.mlp.gate_up_proj.weight"), rows, 2 * inner)]
}
