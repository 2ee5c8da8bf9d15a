//! Granite 4: Mamba-2 layers and attention with or without RoPE, Granite's factors, and a dense feed-forward
//! block, beside experts in some models. Source: `config.json` of ibm-granite/granite-4.0-h-micro,
//! granite-4.0-h-tiny and granite-4.0-micro;
//! `modeling_granitemoehybrid.py` of transformers.

use lm_formats::{GgufEntry, Result};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Architecture, BASE, granite, granite_moe};
use crate::checkpoint::{LayerParam, Param, Piece, StoredValues, TensorLocation, hugging_face_name};
use crate::config::{ModelConfig, unsupported};
use crate::gguf::{
    Description, EXPERTS, GgufArchitecture, MAMBA2_TENSORS, RopeLayout, SHARED_EXPERT, Settings, has_tensor,
    put_inner_size, put_kv_heads, put_layer_types,
};
use crate::spec::{DecoderSpec, HybridKeys, by_type, put_mamba2};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["granitemoehybrid"],
    goldens: &[
        "granite-hybrid-tiny",
        "granite-hybrid-tiny-dense",
        "granite-hybrid-tiny-experts",
        "granite-hybrid-tiny-groups",
    ],
    spec,
    weight_name,
    locations,
    gguf: &[&GGUF],
    defaults: r#"{
        "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
        "embedding_multiplier": 1.0, "logits_scaling": 1.0, "residual_multiplier": 1.0, "attention_multiplier": 1.0,
        "num_local_experts": 8, "num_experts_per_tok": 2, "shared_intermediate_size": 1024, "mamba_n_heads": 128,
        "mamba_n_groups": 1, "mamba_d_state": 256, "mamba_d_head": "auto", "mamba_d_conv": 4, "mamba_expand": 2,
        "mamba_conv_bias": true, "mamba_proj_bias": false
    }"#,
    ..BASE
};

/// Switch of RoPE in Granite's files.
const FINETUNED: &str = "rope.scaling.finetuned";

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[
        granite::FACTORS[0],
        granite::FACTORS[1],
        granite::FACTORS[2],
        granite::FACTORS[3],
        ("expert_count", "num_local_experts"),
        ("expert_shared_feed_forward_length", "shared_intermediate_size"),
        ("expert_used_count", "num_experts_per_tok"),
        ("ssm.conv_kernel", "mamba_d_conv"),
        ("ssm.group_count", "mamba_n_groups"),
        ("ssm.state_size", "mamba_d_state"),
        ("ssm.time_step_rank", "mamba_n_heads"),
    ],
    rope_layout: RopeLayout::Interleaved,
    read: read_gguf,
    write: write_gguf,
    tensors: &[MAMBA2_TENSORS, EXPERTS, SHARED_EXPERT, &[("ffn_gate_inp", "mlp.gate")]],
    values: &[("ssm_a", StoredValues::NegatedExp)],
    ..GgufArchitecture::new("granitehybrid", "granitemoehybrid")
};

fn read_gguf(model: &Description<'_>, config: &mut Map<String, Value>) -> Result<()> {
    let attends = put_kv_heads(model, config)?;
    put_layer_types(config, &attends, ["full_attention", "linear_attention"]);
    let inner = put_inner_size(model, config, "mamba_d_head")?;
    let expand = inner as f64 / model.required_size("embedding_length")?.max(1) as f64;
    config.insert("mamba_expand".to_owned(), expand.into());
    if !model.has("attention.scale") {
        config.insert("attention_multiplier".to_owned(), (model.head_dim()? as f64).sqrt().recip().into());
    }
    if !model.has("expert_shared_feed_forward_length") {
        let width = model.required_size("feed_forward_length")?;
        config.insert("shared_intermediate_size".to_owned(), width.into());
    }
    let positions = if model.bool(FINETUNED)? == Some(false) { "nope" } else { "rope" };
    config.insert("position_embedding_type".to_owned(), positions.into());
    config.insert("num_local_experts".to_owned(), model.size("expert_count")?.unwrap_or(0).into());
    for (tensor, key) in [
        ("attn_q.bias", "attention_bias"),
        ("ssm_conv1d.bias", "mamba_conv_bias"),
        ("ssm_in.bias", "mamba_proj_bias"),
    ] {
        config.insert(key.to_owned(), has_tensor(model, tensor)?.into());
    }
    Ok(())
}

fn write_gguf(config: &ModelConfig, spec: &DecoderSpec, settings: &mut Settings) -> Result<()> {
    let keys: HybridKeys = config.read()?;
    settings.put_kv_heads(spec)?;
    settings.put_size("ssm.inner_size", "mamba_expand", keys.inner_width(config)?)?;
    settings.put(FINETUNED, GgufEntry::Bool(!spec.ropes.is_empty()));
    Ok(())
}

/// Keys of Granite 4 alone.
#[derive(Deserialize)]
struct Keys {
    #[serde(alias = "layers_block_type")]
    layer_types: Option<Vec<String>>,
    num_local_experts: usize,
    /// Width of the dense block, or of the shared expert.
    shared_intermediate_size: usize,
    /// `rope`, or `nope` and absent: no RoPE.
    position_embedding_type: Option<String>,
}

impl Keys {
    fn rotates(&self) -> Result<bool> {
        match self.position_embedding_type.as_deref() {
            Some("rope") => Ok(true),
            None | Some("nope") => Ok(false),
            Some(other) => Err(unsupported("position_embedding_type", other, "rope, nope")),
        }
    }
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let keys: Keys = config.read()?;
    let experts = match keys.num_local_experts {
        0 => None,
        _ => Some(granite_moe::with_shared_expert(config, keys.shared_intermediate_size)?),
    };
    let config = &ModelConfig {
        mlp_bias: false, // Not a key of Granite 4.
        intermediate_size: keys.shared_intermediate_size,
        layer_types: keys.layer_types.clone(),
        ..config.clone()
    };
    let mut spec = granite::with_factors(config, DecoderSpec::partial_rotary(config)?)?;
    if let Some(experts) = experts {
        spec.layers.iter_mut().for_each(|layer| layer.mlp = experts.clone());
    }
    if !keys.rotates()? {
        spec.ropes.clear();
        spec.attention_mut().for_each(|attention| attention.rope = None);
    }
    let types =
        [("full_attention", true), ("attention", true), ("linear_attention", false), ("mamba", false)];
    let attends = by_type(config, &types)?.unwrap_or_else(|| vec![false; config.num_hidden_layers]);
    put_mamba2(config, &mut spec, &attends)?;
    Ok(spec)
}

fn weight_name(param: Param) -> String {
    match param {
        Param::Layer(layer, LayerParam::Conv1d(piece)) => {
            format!("model.layers.{layer}.mamba.conv1d.{piece}")
        }
        other => hugging_face_name(other),
    }
}

/// Gate and up projection of the dense block are fused into one tensor; experts are stored as Granite MoE's.
fn locations(spec: &DecoderSpec, param: Param) -> Vec<TensorLocation> {
    let Param::Layer(layer, param) = param else { return Vec::new() };
    let Some(inner) = spec.layers[layer].mlp.dense_width() else {
        return granite_moe::locations(spec, Param::Layer(layer, param));
    };
    let name = |tensor: &str| format!("model.layers.{layer}.shared_mlp.{tensor}.weight");
    let fused = |rows| vec![TensorLocation::part(name("input_linear"), rows, 2 * inner)];
    match param {
        LayerParam::Gate(Piece::Weight) => fused(0..inner),
        LayerParam::Up(Piece::Weight) => fused(inner..2 * inner),
        LayerParam::Down(Piece::Weight) => vec![TensorLocation::whole(name("output_linear"))],
        _ => Vec::new(),
    }
}
