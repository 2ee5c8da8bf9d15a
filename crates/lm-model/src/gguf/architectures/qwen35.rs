//! Qwen 3.5.

use lm_formats::{GgufEntry, Result};
use serde_json::{Map, Value};

use super::super::config::put_layer_types;
use super::super::description::Description;
use super::super::write::Settings;
use super::GgufArchitecture;
use crate::config::ModelConfig;
use crate::spec::{DecoderSpec, LayerSpec, Mixer};
use crate::weights::StoredValues;

pub(super) const QWEN35: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("full_attention_interval", "full_attention_interval"),
        ("ssm.conv_kernel", "linear_conv_kernel_dim"),
        ("ssm.group_count", "linear_num_key_heads"),
        ("ssm.state_size", "linear_key_head_dim"),
        ("ssm.time_step_rank", "linear_num_value_heads"),
    ],
    more,
    write,
    tensors: &[&[
        ("attn_gate", "linear_attn.in_proj_z"),
        ("attn_qkv", "linear_attn.in_proj_qkv"),
        ("post_attention_norm", "post_attention_layernorm"),
        ("ssm_a", "linear_attn.A_log"),
        ("ssm_alpha", "linear_attn.in_proj_a"),
        ("ssm_beta", "linear_attn.in_proj_b"),
        ("ssm_conv1d", "linear_attn.conv1d"),
        ("ssm_dt.bias", "linear_attn.dt_bias"),
        ("ssm_norm", "linear_attn.norm"),
        ("ssm_out", "linear_attn.out_proj"),
    ]],
    values: &[
        ("attn_k_norm.weight", StoredValues::PlusOne),
        ("attn_norm.weight", StoredValues::PlusOne),
        ("attn_q_norm.weight", StoredValues::PlusOne),
        ("output_norm.weight", StoredValues::PlusOne),
        ("post_attention_norm.weight", StoredValues::PlusOne),
        ("ssm_a", StoredValues::NegatedExp),
    ],
    ..GgufArchitecture::new("qwen35", "qwen3_5_text")
};

/// Default M-RoPE sections: rotated pairs per position (time, height, width), which are equal for text.
const SECTIONS: [i32; 3] = [11, 11, 10];

fn write(config: &ModelConfig, spec: &DecoderSpec, settings: &mut Settings) -> Result<()> {
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
    let given = config.keys.get("rope_parameters").and_then(|rope| rope.get("mrope_section")?.as_array());
    let given = given.map(|list| list.iter().filter_map(|n| i32::try_from(n.as_i64()?).ok()).collect());
    let mut sections: Vec<i32> = given.unwrap_or(SECTIONS.into());
    sections.resize(4, 0);
    settings.put("rope.dimension_sections", GgufEntry::Ints(sections));
    Ok(())
}

fn more(model: &Description<'_>, config: &mut Map<String, Value>) -> Result<()> {
    let (width, heads) = (model.required_size("ssm.inner_size")?, model.required_size("ssm.time_step_rank")?);
    if heads == 0 || !width.is_multiple_of(heads) {
        let expected = format!("a divisor of {} = {width}", model.key("ssm.inner_size"));
        return Err(model.metadata.invalid(&model.key("ssm.time_step_rank"), heads, expected));
    }
    config.insert("linear_value_head_dim".to_owned(), (width / heads).into());
    config.insert("linear_head_order".to_owned(), "tiled".into());
    if let Some(recurrent) = model.flags("attention.recurrent_layers")? {
        put_layer_types(config, &recurrent, ["linear_attention", "full_attention"]);
    }
    let first_attention =
        (0..model.num_layers()?).find(|layer| model.tensor(&format!("blk.{layer}.attn_q.weight")).is_some());
    let bias =
        first_attention.is_some_and(|layer| model.tensor(&format!("blk.{layer}.attn_q.bias")).is_some());
    config.insert("attention_bias".to_owned(), bias.into());
    Ok(())
}
