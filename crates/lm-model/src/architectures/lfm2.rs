//! LFM2: short convolutions on most layers, grouped-query attention with an RMS norm over each query and key
//! head on the rest. Source: LFM2 Technical Report (arXiv 2511.23404); `config.json` of LiquidAI/LFM2-350M.

use lm_formats::Result;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Architecture, BASE};
use crate::checkpoint::{LayerParam, Param, Piece, hugging_face_name};
use crate::config::{ModelConfig, invalid};
use crate::gguf::{Description, GgufArchitecture, TensorNames, put_kv_heads, put_layer_types};
use crate::spec::{AttentionLayer, DecoderSpec, Mixer, QkNorm, ShortConvLayer, by_type};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["lfm2"],
    goldens: &["lfm2-tiny", "lfm2-tiny-bias", "lfm2-tiny-short"],
    spec,
    weight_name,
    ignored_prefixes: &["model.multi_modal_projector.", "model.vision_tower."],
    gguf: &[&GGUF],
    defaults: r#"{
        "vocab_size": 65536, "hidden_size": 2560, "intermediate_size": 12288, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 128000, "rms_norm_eps": 1e-5,
        "norm_eps": 1e-5, "rope_theta": 1000000.0, "tie_word_embeddings": true, "conv_bias": false, "conv_L_cache": 3, "block_multiple_of": 256,
        "block_ffn_dim_multiplier": 1.0, "block_auto_adjust_ff_dim": true
    }"#,
    ..BASE
};

pub(super) const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[("attention.layer_norm_rms_epsilon", "norm_eps"), ("shortconv.l_cache", "conv_L_cache")],
    read: read_gguf,
    write: |_, spec, settings| settings.put_kv_heads(spec),
    tensors: &[TENSORS],
    ..GgufArchitecture::new("lfm2", "lfm2")
};

pub(super) const TENSORS: TensorNames = &[
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
];

pub(super) fn read_gguf(model: &Description<'_>, config: &mut Map<String, Value>) -> Result<()> {
    let key = "attention.sliding_window";
    if let Some(slots) = model.size(key)?.filter(|&slots| slots > 0) {
        return Err(model.metadata.unsupported(&model.key(key), slots, "0, or absent"));
    }
    let attends = put_kv_heads(model, config)?;
    put_layer_types(config, &attends, ["full_attention", "conv"]);
    config.insert("block_auto_adjust_ff_dim".to_owned(), false.into());
    Ok(())
}

/// Keys of LFM2 alone.
#[derive(Deserialize)]
#[allow(non_snake_case, reason = "as the key is written")]
struct Keys {
    /// True if the given width is that of an ungated feed-forward block, to be converted to that of a gated
    /// one.
    block_auto_adjust_ff_dim: bool,
    /// Takes precedence over `intermediate_size`.
    block_ff_dim: Option<usize>,
    block_ffn_dim_multiplier: f64,
    block_multiple_of: usize,
    conv_L_cache: usize,
    conv_bias: bool,
    /// Layers with attention, where `layer_types` is absent.
    full_attn_idxs: Option<Vec<usize>>,
    /// Takes precedence over `tie_word_embeddings`.
    tie_embedding: Option<bool>,
}

/// Upper limit of the kernel size, beyond any model; a state holds one input fewer.
const MAX_KERNEL_SIZE: usize = 256;

/// Upper limit of feed-forward widths, beyond any model.
const MAX_WIDTH: usize = 1 << 20;

pub(super) fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let keys: Keys = config.read()?;
    let config = &ModelConfig {
        intermediate_size: feed_forward_width(config, &keys)?,
        tie_word_embeddings: keys.tie_embedding.unwrap_or(config.tie_word_embeddings),
        attention_bias: false, // Neither is a key of LFM2.
        mlp_bias: false,
        ..config.with_norm_eps("norm_eps")?
    };
    if !(2..=MAX_KERNEL_SIZE).contains(&keys.conv_L_cache) {
        return Err(invalid("conv_L_cache", keys.conv_L_cache, format!("2 to {MAX_KERNEL_SIZE}")));
    }
    let conv = ShortConvLayer { kernel: keys.conv_L_cache, bias: keys.conv_bias.into() };
    let mut spec = DecoderSpec::llama(config)?;
    for attention in spec.attention_mut() {
        *attention = AttentionLayer { qk_norm: QkNorm::PerHead, ..attention.clone() };
    }
    for (layer, attends) in spec.layers.iter_mut().zip(attends(config, &keys)?) {
        if !attends {
            layer.mixer = Mixer::ShortConv(conv);
        }
    }
    Ok(spec)
}

/// Feed-forward width: the given one or, where the file asks for the adjustment, two thirds of it times a
/// multiplier, rounded up to a multiple.
fn feed_forward_width(config: &ModelConfig, keys: &Keys) -> Result<usize> {
    let (key, given) = match keys.block_ff_dim {
        Some(width) => ("block_ff_dim", width),
        None => ("intermediate_size", config.intermediate_size),
    };
    if !(2..=MAX_WIDTH).contains(&given) {
        return Err(invalid(key, given, format!("2 to {MAX_WIDTH}")));
    }
    if !keys.block_auto_adjust_ff_dim {
        return Ok(given);
    }
    let (multiplier, multiple) = (keys.block_ffn_dim_multiplier, keys.block_multiple_of);
    if !(multiplier > 0.0 && multiplier <= 16.0) {
        return Err(invalid("block_ffn_dim_multiplier", multiplier, "a number above 0, at most 16"));
    }
    if !(1..=MAX_WIDTH).contains(&multiple) {
        return Err(invalid("block_multiple_of", multiple, format!("1 to {MAX_WIDTH}")));
    }
    let width = (multiplier * (2 * given / 3) as f64) as usize;
    Ok(width.max(1).next_multiple_of(multiple))
}

/// Returns, for each layer, true if it has attention.
fn attends(config: &ModelConfig, keys: &Keys) -> Result<Vec<bool>> {
    if let Some(attends) = by_type(config, &[("full_attention", true), ("conv", false)])? {
        return Ok(attends);
    }
    let attends = |layer| keys.full_attn_idxs.as_ref().is_none_or(|indices| indices.contains(&layer));
    Ok((0..config.num_hidden_layers).map(attends).collect())
}

pub(super) fn weight_name(param: Param) -> String {
    let (layer, param) = match param {
        Param::OutputNorm => return "model.embedding_norm.weight".into(),
        Param::Layer(layer, param) => (layer, param),
        other => return hugging_face_name(other),
    };
    let module = match param {
        LayerParam::MixerPreNorm => "operator_norm",
        LayerParam::QueryNorm => "self_attn.q_layernorm",
        LayerParam::KeyNorm => "self_attn.k_layernorm",
        LayerParam::AttentionOutput(Piece::Weight) => "self_attn.out_proj",
        LayerParam::MlpPreNorm => "ffn_norm",
        LayerParam::Gate(Piece::Weight) => "feed_forward.w1",
        LayerParam::Up(Piece::Weight) => "feed_forward.w3",
        LayerParam::Down(Piece::Weight) => "feed_forward.w2",
        other => return hugging_face_name(Param::Layer(layer, other)),
    };
    format!("model.layers.{layer}.{module}.weight")
}
