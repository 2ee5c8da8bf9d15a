//! Phi-1, Phi-1.5 and Phi-2: both blocks of a layer read one LayerNorm; an ungated feed-forward block,
//! partial rotary, biases everywhere, of the output head too. Source: Textbooks Are All You Need II (arXiv
//! 2309.05463); `config.json` of microsoft/phi-2; `PhiConfig` of transformers for the defaults.

use lm_formats::Result;
use serde::Deserialize;

use super::{Architecture, BASE};
use crate::checkpoint::{LayerParam, Param, hugging_face_name};
use crate::config::ModelConfig;
use crate::gguf::GgufArchitecture;
use crate::spec::{Bias, DecoderSpec, Mlp, NormKind, NormPlacement, QkNorm};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["phi"],
    goldens: &["phi-tiny", "phi-tiny-gqa", "phi-tiny-norms", "phi-tiny-whole"],
    spec,
    weight_name,
    gguf: &[&GGUF],
    defaults: r#"{
        "max_position_embeddings": 2048, "layer_norm_eps": 1e-5, "rms_norm_eps": 1e-5, "hidden_act": "gelu_new",
        "partial_rotary_factor": 0.5, "qk_layernorm": false
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[("attention.layer_norm_epsilon", "layer_norm_eps")],
    tensors: &[&[
        ("attn_output", "self_attn.dense"),
        ("ffn_down", "mlp.fc2"),
        ("ffn_up", "mlp.fc1"),
        ("output_norm", "model.final_layernorm"),
    ]],
    ..GgufArchitecture::new("phi2", "phi")
};

/// Keys of this architecture alone.
#[derive(Deserialize)]
struct Keys {
    /// True if queries and keys have norms; in no published checkpoint.
    qk_layernorm: bool,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let Keys { qk_layernorm } = config.read()?;
    let config =
        &ModelConfig { attention_bias: true, mlp_bias: true, ..config.with_norm_eps("layer_norm_eps")? };
    let mut spec = DecoderSpec::partial_rotary(config)?;
    spec.norm_kind = NormKind::Layer(Bias::Present);
    spec.head_bias = Bias::Present;
    if qk_layernorm {
        spec.attention_mut().for_each(|attention| attention.qk_norm = QkNorm::PerHead);
    }
    let mlp = Mlp::plain(config)?;
    for layer in &mut spec.layers {
        (layer.mlp, layer.norms) = (mlp.clone(), NormPlacement::Parallel);
    }
    Ok(spec)
}

fn weight_name(param: Param) -> String {
    let norm = |layer: usize, name: &str| format!("model.layers.{layer}.self_attn.{name}");
    match param {
        Param::OutputNorm => "model.final_layernorm.weight".into(),
        Param::OutputNormBias => "model.final_layernorm.bias".into(),
        Param::Layer(layer, LayerParam::AttentionOutput(piece)) => {
            format!("model.layers.{layer}.self_attn.dense.{piece}")
        }
        Param::Layer(layer, LayerParam::QueryNorm) => norm(layer, "q_layernorm.weight"),
        Param::Layer(layer, LayerParam::QueryNormBias) => norm(layer, "q_layernorm.bias"),
        Param::Layer(layer, LayerParam::KeyNorm) => norm(layer, "k_layernorm.weight"),
        Param::Layer(layer, LayerParam::KeyNormBias) => norm(layer, "k_layernorm.bias"),
        Param::Layer(layer, LayerParam::Up(piece)) => format!("model.layers.{layer}.mlp.fc1.{piece}"),
        Param::Layer(layer, LayerParam::Down(piece)) => format!("model.layers.{layer}.mlp.fc2.{piece}"),
        other => hugging_face_name(other),
    }
}
