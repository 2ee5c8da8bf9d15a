//! LFM2, whose layers without key/value heads are short convolutions.

use lm_formats::Result;
use serde_json::{Map, Value};

use super::super::config::put_layer_types;
use super::super::description::Description;
use super::GgufArchitecture;
use crate::spec::{LayerSpec, Mixer};

pub(super) const LFM2: GgufArchitecture = GgufArchitecture {
    keys: &[("attention.layer_norm_rms_epsilon", "norm_eps"), ("shortconv.l_cache", "conv_L_cache")],
    more,
    write: |_, spec, settings| {
        let heads = |layer: &LayerSpec| match &layer.mixer {
            Mixer::Attention(attention) => attention.num_kv_heads,
            Mixer::ShortConv(_) | Mixer::DeltaNet(_) => 0,
        };
        let heads: Vec<_> = spec.layers.iter().map(heads).collect();
        settings.put_sizes("attention.head_count_kv", "num_key_value_heads", &heads)
    },
    tensors: &[&[
        ("attn_k_norm", "self_attn.k_layernorm"),
        ("attn_norm", "operator_norm"),
        ("attn_output", "self_attn.out_proj"),
        ("attn_q_norm", "self_attn.q_layernorm"),
        ("ffn_down", "feed_forward.w2"),
        ("ffn_gate", "feed_forward.w1"),
        ("ffn_norm", "ffn_norm"),
        ("ffn_up", "feed_forward.w3"),
        ("shortconv.conv", "conv.conv"),
        ("shortconv.in_proj", "conv.in_proj"),
        ("shortconv.out_proj", "conv.out_proj"),
        ("token_embd_norm", "model.embedding_norm"),
    ]],
    ..GgufArchitecture::new("lfm2", "lfm2")
};

fn more(model: &Description<'_>, config: &mut Map<String, Value>) -> Result<()> {
    let key = "attention.sliding_window";
    if let Some(slots) = model.size(key)?.filter(|&slots| slots > 0) {
        return Err(model.metadata.unsupported(&model.key(key), slots, "0, or absent"));
    }
    let key = "attention.head_count_kv";
    let heads = model.sizes_of_layers(key)?;
    let attends: Vec<_> = heads.iter().map(|&heads| heads > 0).collect();
    let mut of_attention = heads.into_iter().filter(|&heads| heads > 0);
    // Any number will do if no layer has attention.
    let of_each = of_attention.next().unwrap_or(1);
    if let Some(other) = of_attention.find(|&heads| heads != of_each) {
        return Err(model.metadata.unsupported(&model.key(key), other, format!("{of_each}, or 0")));
    }
    put_layer_types(config, &attends, ["full_attention", "conv"]);
    config.insert("num_key_value_heads".to_owned(), of_each.into());
    config.insert("block_auto_adjust_ff_dim".to_owned(), false.into());
    Ok(())
}
