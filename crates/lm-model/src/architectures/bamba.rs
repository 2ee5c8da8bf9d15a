//! Bamba: Mamba-2 layers and attention with partial rotary, with a gated feed-forward block in each layer.
//! Source: `config.json` of ibm-ai-platform/Bamba-9B-v2; `BambaConfig` and `modeling_bamba.py` of
//! transformers. llama.cpp's files have it as `granitehybrid`, and are read as such.

use lm_formats::Result;
use serde::Deserialize;

use super::{Architecture, BASE};
use crate::checkpoint::{LayerParam, Param, hugging_face_name};
use crate::config::ModelConfig;
use crate::spec::{DecoderSpec, put_mamba2};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["bamba"],
    goldens: &["bamba-tiny", "bamba-tiny-bias", "bamba-tiny-groups"],
    spec,
    weight_name,
    defaults: r#"{
        "vocab_size": 128000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 262144, "rms_norm_eps": 1e-5,
        "mamba_n_heads": 128, "mamba_n_groups": 1, "mamba_d_state": 256, "mamba_d_head": "auto", "mamba_d_conv": 4,
        "mamba_expand": 2, "mamba_conv_bias": true, "mamba_proj_bias": false
    }"#,
    ..BASE
};

/// Fraction of a head that is rotated where the RoPE parameters have none, whatever `config.json` says.
const ROTATED: f64 = 0.5;

#[derive(Deserialize)]
struct Keys {
    /// Layers with attention.
    attn_layer_indices: Option<Vec<usize>>,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let keys: Keys = config.read()?;
    let config = &ModelConfig { partial_rotary_factor: Some(ROTATED), ..config.clone() };
    let mut spec = DecoderSpec::partial_rotary(config)?;
    let attends = |layer| keys.attn_layer_indices.iter().flatten().any(|&attends| attends == layer);
    let attends: Vec<_> = (0..config.num_hidden_layers).map(attends).collect();
    put_mamba2(config, &mut spec, &attends)?;
    Ok(spec)
}

fn weight_name(param: Param) -> String {
    let (layer, param) = match param {
        Param::OutputNorm => return "model.final_layernorm.weight".into(),
        Param::Layer(layer, param) => (layer, param),
        other => return hugging_face_name(other),
    };
    let module = match param {
        LayerParam::Conv1d(piece) => format!("mamba.conv1d.{piece}"),
        LayerParam::MlpPreNorm => "pre_ff_layernorm.weight".into(),
        LayerParam::Gate(piece) => format!("feed_forward.gate_proj.{piece}"),
        LayerParam::Up(piece) => format!("feed_forward.up_proj.{piece}"),
        LayerParam::Down(piece) => format!("feed_forward.down_proj.{piece}"),
        other => return hugging_face_name(Param::Layer(layer, other)),
    };
    format!("model.layers.{layer}.{module}")
}
