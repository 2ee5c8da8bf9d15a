//! GPT-2: LayerNorm, learned embeddings of positions, an ungated feed-forward block, biases everywhere;
//! projections are stored transposed, those of attention in one tensor. Source: Language Models are
//! Unsupervised Multitask Learners (Radford et al., 2019); `config.json` of openai-community/gpt2;
//! `GPT2Config` of transformers for the defaults.

use lm_formats::Result;
use serde::Deserialize;

use super::{Architecture, BASE};
use crate::checkpoint::{LayerParam, Param, Piece, TensorLocation, hugging_face_name};
use crate::config::{ModelConfig, unsupported};
use crate::gguf::GgufArchitecture;
use crate::spec::{Bias, DecoderSpec, Mlp, NormKind, PositionTable};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["gpt2"],
    goldens: &["gpt2-tiny", "gpt2-tiny-by-layer", "gpt2-tiny-unscaled"],
    spec,
    weight_name,
    locations,
    // Causal masks.
    ignored_suffixes: &[".attn.bias", ".attn.masked_bias"],
    gguf: &[&GGUF],
    renamed_keys: &[
        ("n_embd", "hidden_size"),
        ("n_layer", "num_hidden_layers"),
        ("n_head", "num_attention_heads"),
        ("n_positions", "max_position_embeddings"),
        ("n_inner", "intermediate_size"),
        ("activation_function", "hidden_act"),
    ],
    defaults: r#"{
        "vocab_size": 50257, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "max_position_embeddings": 1024, "layer_norm_epsilon": 1e-5, "rms_norm_eps": 1e-5,
        "hidden_act": "gelu_new", "scale_attn_weights": true, "scale_attn_by_inverse_layer_idx": false,
        "add_cross_attention": false, "tie_word_embeddings": true
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[("attention.layer_norm_epsilon", "layer_norm_epsilon")],
    write: |_, _, settings| {
        settings.remove("attention.head_count_kv"); // Each query head has its own.
        Ok(())
    },
    tensors: &[&[
        ("attn_norm", "ln_1"),
        ("attn_output", "self_attn.o_proj"),
        ("attn_qkv", "self_attn.qkv_proj"),
        ("ffn_norm", "ln_2"),
        ("output_norm", "model.ln_f"),
        ("position_embd", "model.wpe"),
        ("token_embd", "model.wte"),
    ]],
    ..GgufArchitecture::new("gpt2", "gpt2")
};

/// Keys of this architecture alone.
#[derive(Deserialize)]
struct Keys {
    /// True if scores are divided by the root of the width of a head.
    scale_attn_weights: bool,
    /// True if scores are divided by the number of the layer, which begins with one.
    scale_attn_by_inverse_layer_idx: bool,
    add_cross_attention: bool,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let keys: Keys = config.read()?;
    if keys.add_cross_attention {
        return Err(unsupported("add_cross_attention", true, "false"));
    }
    let config = &ModelConfig {
        attention_bias: true,
        mlp_bias: true,
        head_dim: None,
        num_key_value_heads: None,
        ..config.with_norm_eps("layer_norm_epsilon")?
    };
    let mut spec = DecoderSpec::without_rope(config)?;
    spec.norm_kind = NormKind::Layer(Bias::Present);
    spec.learned_positions = Some(PositionTable { rows: config.max_position_embeddings, first: 0 });
    let mlp = Mlp::plain(config)?;
    spec.layers.iter_mut().for_each(|layer| layer.mlp = mlp.clone());
    for (layer, attention) in spec.attention_mut().enumerate() {
        if !keys.scale_attn_weights {
            attention.scale = 1.0;
        }
        if keys.scale_attn_by_inverse_layer_idx {
            attention.scale /= (layer + 1) as f32;
        }
    }
    Ok(spec)
}

fn weight_name(param: Param) -> String {
    let (layer, param) = match param {
        Param::Embedding => return "model.wte.weight".into(),
        Param::OutputNorm => return "model.ln_f.weight".into(),
        Param::OutputNormBias => return "model.ln_f.bias".into(),
        Param::Layer(layer, param) => (layer, param),
        other => return hugging_face_name(other),
    };
    let module = match param {
        LayerParam::MixerPreNorm => "ln_1.weight".to_owned(),
        LayerParam::MixerPreNormBias => "ln_1.bias".to_owned(),
        LayerParam::MlpPreNorm => "ln_2.weight".to_owned(),
        LayerParam::MlpPreNormBias => "ln_2.bias".to_owned(),
        // Our own names, which no file has: queries, keys and values are in one tensor.
        LayerParam::Query(piece) => format!("attn.q_proj.{piece}"),
        LayerParam::Key(piece) => format!("attn.k_proj.{piece}"),
        LayerParam::Value(piece) => format!("attn.v_proj.{piece}"),
        other => return hugging_face_name(Param::Layer(layer, other)),
    };
    format!("model.layers.{layer}.{module}")
}

/// Weights have their inputs first in published checkpoints, and their outputs first in GGUF files.
fn locations(spec: &DecoderSpec, param: Param) -> Vec<TensorLocation> {
    let Param::Layer(layer, param) = param else { return Vec::new() };
    let hidden = spec.hidden_size;
    let inner = spec.layers[layer].mlp.dense_width().unwrap_or(0);
    let name = |tensor: &str| format!("model.layers.{layer}.{tensor}");
    let whole = |tensor: &str, piece, [inputs, outputs]: [usize; 2]| match piece {
        Piece::Weight => {
            vec![TensorLocation::transposed(name(&format!("{tensor}.weight")), [inputs, outputs], 0..outputs)]
        }
        Piece::Bias => vec![TensorLocation::whole(name(&format!("{tensor}.bias")))],
    };
    let fused = |part: usize, piece| {
        let (rows, of) = (part * hidden..(part + 1) * hidden, 3 * hidden);
        let in_file = TensorLocation::part(name(&format!("self_attn.qkv_proj.{piece}")), rows.clone(), of);
        let tensor = name(&format!("attn.c_attn.{piece}"));
        match piece {
            Piece::Weight => vec![TensorLocation::transposed(tensor, [hidden, of], rows), in_file],
            Piece::Bias => vec![TensorLocation::part(tensor, rows, of), in_file],
        }
    };
    match param {
        LayerParam::Query(piece) => fused(0, piece),
        LayerParam::Key(piece) => fused(1, piece),
        LayerParam::Value(piece) => fused(2, piece),
        LayerParam::AttentionOutput(piece) => whole("attn.c_proj", piece, [hidden, hidden]),
        LayerParam::Up(piece) => whole("mlp.c_fc", piece, [hidden, inner]),
        LayerParam::Down(piece) => whole("mlp.c_proj", piece, [inner, hidden]),
        _ => Vec::new(),
    }
}
