//! Qwen3.5, the text model: gated delta nets on three layers of four, gated GQA with an RMS norm over each
//! query and key head on the rest; norm weights stored minus one, partial rotary. Source:
//! `Qwen3_5ForCausalLM` of transformers 5.23; `config.json` of Qwen/Qwen3.5-27B.

use lm_formats::{GgufEntry, Result};
use lm_kernels::{Activation, DeltaNetSpec, HeadOrder};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Architecture, BASE};
use crate::checkpoint::{LayerParam, Param, StoredValues, hugging_face_name};
use crate::config::{ModelConfig, invalid, unsupported};
use crate::gguf::{
    Description, GgufArchitecture, Settings, TensorNames, has_tensor, put_inner_size, put_layer_types, rope,
};
use crate::spec::{
    AttentionLayer, DecoderSpec, DeltaNetLayer, LayerSpec, Mixer, NormWeight, OutputGate, QkNorm, RopeAxes,
    RopeSpec, activation, by_type,
};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["qwen3_5_text"],
    goldens: &["qwen3_5-tiny", "qwen3_5-tiny-odd", "qwen3_5-tiny-vision"],
    spec,
    weight_name,
    ignored_prefixes: &["model.visual.", "mtp."],
    gguf: &[&GGUF],
    defaults: r#"{
        "vocab_size": 248320, "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 32,
        "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 32768,
        "rms_norm_eps": 1e-6, "partial_rotary_factor": 0.25, "full_attention_interval": 4, "attn_output_gate": true,
        "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16,
        "linear_num_value_heads": 32, "linear_value_head_dim": 128, "linear_head_order": "grouped"
    }"#,
    ..BASE
};

pub(super) const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("full_attention_interval", "full_attention_interval"),
        ("ssm.conv_kernel", "linear_conv_kernel_dim"),
        ("ssm.group_count", "linear_num_key_heads"),
        ("ssm.state_size", "linear_key_head_dim"),
        ("ssm.time_step_rank", "linear_num_value_heads"),
    ],
    rope: rope::with_sections,
    read: read_gguf,
    write: write_gguf,
    tensors: &[TENSORS, STEPS],
    values: VALUES,
    ..GgufArchitecture::new("qwen35", "qwen3_5_text")
};

/// Projections to time steps and write strengths, where they are separate.
pub(super) const STEPS: TensorNames =
    &[("ssm_alpha", "linear_attn.in_proj_a"), ("ssm_beta", "linear_attn.in_proj_b")];

/// Tensors of files of models with these delta nets.
pub(super) const TENSORS: TensorNames = &[
    ("attn_gate", "linear_attn.in_proj_z"),
    ("attn_qkv", "linear_attn.in_proj_qkv"),
    ("post_attention_norm", "post_attention_layernorm"),
    ("ssm_a", "linear_attn.A_log"),
    ("ssm_conv1d", "linear_attn.conv1d"),
    ("ssm_dt.bias", "linear_attn.dt_bias"),
    ("ssm_norm", "linear_attn.norm"),
    ("ssm_out", "linear_attn.out_proj"),
];

pub(super) const VALUES: &[(&str, StoredValues)] = &[
    ("attn_k_norm.weight", StoredValues::PlusOne),
    ("attn_norm.weight", StoredValues::PlusOne),
    ("attn_q_norm.weight", StoredValues::PlusOne),
    ("output_norm.weight", StoredValues::PlusOne),
    ("post_attention_norm.weight", StoredValues::PlusOne),
    ("ssm_a", StoredValues::NegatedExp),
];

/// Default M-RoPE sections: rotated pairs per position (time, height, width), which are equal for text.
const SECTIONS: [usize; 3] = [11, 11, 10];

pub(super) fn write_gguf(_: &ModelConfig, spec: &DecoderSpec, settings: &mut Settings) -> Result<()> {
    let is_recurrent = |layer: &LayerSpec| matches!(layer.mixer, Mixer::DeltaNet(_));
    settings
        .put("attention.recurrent_layers", GgufEntry::Bools(spec.layers.iter().map(is_recurrent).collect()));
    let widths = spec.layers.iter().filter_map(|layer| match &layer.mixer {
        Mixer::DeltaNet(delta_net) => Some(delta_net.value_width()),
        _ => None,
    });
    if let Some(width) = widths.max() {
        settings.put_size("ssm.inner_size", "linear_value_head_dim", width)?;
    }
    Ok(())
}

pub(super) fn read_gguf(model: &Description<'_>, config: &mut Map<String, Value>) -> Result<()> {
    put_inner_size(model, config, "linear_value_head_dim")?;
    config.insert("linear_head_order".to_owned(), "tiled".into());
    if let Some(recurrent) = model.flags("attention.recurrent_layers")? {
        put_layer_types(config, &recurrent, ["linear_attention", "full_attention"]);
    }
    config.insert("attention_bias".to_owned(), has_tensor(model, "attn_q.bias")?.into());
    Ok(())
}

/// Keys of these delta nets and attention layers.
#[derive(Deserialize)]
struct Keys {
    /// One layer in this many has attention, where `layer_types` is absent.
    full_attention_interval: usize,
    /// True if attention outputs are gated; the reference always gates them.
    attn_output_gate: bool,
    linear_conv_kernel_dim: usize,
    linear_key_head_dim: usize,
    linear_num_key_heads: usize,
    linear_num_value_heads: usize,
    linear_value_head_dim: usize,
    /// Not a key of published files: assignment of value heads to key heads, [`HeadOrder`].
    linear_head_order: String,
}

/// Upper limit of head counts and head widths, beyond any model, so that no product of sizes overflows;
/// likewise of kernel sizes.
const MAX_HEADS: usize = 1 << 12;
const MAX_KERNEL_SIZE: usize = 256;

pub(super) fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let (key, mut rope) = config.rope_parameters();
    let axes = RopeAxes::Interleaved(rope.take_sections(key, SECTIONS)?);
    let rope = RopeSpec::from_parameters(key, &rope, config.head_dim()?, config.max_position_embeddings)?;
    hybrid(config, RopeSpec { axes, ..rope })
}

/// Builds a decoder of gated delta nets and gated attention.
pub(super) fn hybrid(config: &ModelConfig, rope: RopeSpec) -> Result<DecoderSpec> {
    let keys: Keys = config.read()?;
    if !keys.attn_output_gate {
        return Err(unsupported("attn_output_gate", false, "true"));
    }
    let config = &ModelConfig { mlp_bias: false, ..config.without_rope() }; // Not a key of Qwen3.5.
    let net = delta_net(&keys)?;
    let mut spec = DecoderSpec {
        norm_weight: NormWeight::OnePlus,
        context_len: rope.context_len(config.max_position_embeddings),
        ropes: vec![rope],
        ..DecoderSpec::llama(config)?
    };
    for attention in spec.attention_mut() {
        let output_gate = OutputGate::PerElement;
        *attention = AttentionLayer { qk_norm: QkNorm::PerHead, output_gate, ..attention.clone() };
    }
    let attends = attends(config, &keys)?;
    // The reference applies it after the convolution of a delta net, too.
    let name = config.hidden_act.as_deref().unwrap_or("silu");
    if attends.contains(&false) && activation("hidden_act", name)? != Activation::Silu {
        return Err(unsupported("hidden_act", name, "silu, in a model with delta nets"));
    }
    for (layer, _) in spec.layers.iter_mut().zip(attends).filter(|(_, attends)| !attends) {
        layer.mixer = Mixer::DeltaNet(net);
    }
    Ok(spec)
}

fn delta_net(keys: &Keys) -> Result<DeltaNetLayer> {
    for (key, size, most) in [
        ("linear_conv_kernel_dim", keys.linear_conv_kernel_dim, MAX_KERNEL_SIZE),
        ("linear_key_head_dim", keys.linear_key_head_dim, MAX_HEADS),
        ("linear_num_key_heads", keys.linear_num_key_heads, MAX_HEADS),
        ("linear_num_value_heads", keys.linear_num_value_heads, MAX_HEADS),
        ("linear_value_head_dim", keys.linear_value_head_dim, MAX_HEADS),
    ] {
        if !(1..=most).contains(&size) {
            return Err(invalid(key, size, format!("1 to {most}")));
        }
    }
    if !keys.linear_num_value_heads.is_multiple_of(keys.linear_num_key_heads) {
        let expected = format!("a divisor of linear_num_value_heads = {}", keys.linear_num_value_heads);
        return Err(invalid("linear_num_key_heads", keys.linear_num_key_heads, expected));
    }
    let order = match keys.linear_head_order.as_str() {
        "grouped" => HeadOrder::Grouped,
        "tiled" => HeadOrder::Tiled,
        other => return Err(unsupported("linear_head_order", other, "grouped, tiled")),
    };
    let heads = DeltaNetSpec {
        num_key_heads: keys.linear_num_key_heads,
        num_value_heads: keys.linear_num_value_heads,
        key_dim: keys.linear_key_head_dim,
        value_dim: keys.linear_value_head_dim,
        order,
    };
    Ok(DeltaNetLayer { heads, kernel: keys.linear_conv_kernel_dim })
}

/// Returns, for each layer, true if it has attention.
fn attends(config: &ModelConfig, keys: &Keys) -> Result<Vec<bool>> {
    let interval = keys.full_attention_interval;
    match by_type(config, &[("full_attention", true), ("linear_attention", false)])? {
        Some(attends) => Ok(attends),
        None if interval == 0 => Err(invalid("full_attention_interval", interval, "a positive number")),
        None => Ok((1..=config.num_hidden_layers).map(|layer| layer.is_multiple_of(interval)).collect()),
    }
}

pub(super) fn weight_name(param: Param) -> String {
    match param {
        Param::Layer(layer, LayerParam::Conv1d(_)) => {
            format!("model.layers.{layer}.linear_attn.conv1d.weight")
        }
        other => hugging_face_name(other),
    }
}
