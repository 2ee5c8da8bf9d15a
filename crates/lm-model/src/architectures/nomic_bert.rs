//! Nomic BERT: post-norm blocks with RoPE and a gated feed-forward block, without biases in projections.
//! Source: arXiv 2402.01613; `config.json` of nomic-ai/nomic-embed-text-v1.5, whose names differ from those
//! of transformers; `NomicBertConfig` of transformers for the defaults.

use lm_formats::Result;
use serde::Deserialize;
use serde_json::Value;

use super::{Architecture, BASE, bert};
use crate::checkpoint::{LayerParam, Param, Piece, TensorLocation, hugging_face_name};
use crate::config::{ModelConfig, unsupported};
use crate::gguf::{GgufArchitecture, rows};
use crate::spec::{
    Bias, DecoderSpec, Direction, EmbeddingNorm, EncoderSpec, NormKind, NormPlacement, OutputHead, OutputNorm,
};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["nomic_bert"],
    spec,
    weight_name,
    locations,
    gguf: &[&GGUF],
    ignored_suffixes: bert::IGNORED_SUFFIXES,
    ignored_prefixes: &["cls.", "model.pooler."],
    renamed_keys: &[
        ("layer_norm_epsilon", "layer_norm_eps"),
        ("n_embd", "hidden_size"),
        ("n_head", "num_attention_heads"),
        ("n_inner", "intermediate_size"),
        ("n_layer", "num_hidden_layers"),
        ("n_positions", "max_position_embeddings"),
        ("rotary_emb_base", "rope_theta"),
    ],
    defaults: r#"{
        "vocab_size": 30528, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
        "num_attention_heads": 12, "hidden_act": "silu", "max_position_embeddings": 2048, "type_vocab_size": 2,
        "layer_norm_eps": 1e-12, "rms_norm_eps": 1e-12, "rope_theta": 1000.0
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[("attention.layer_norm_epsilon", "layer_norm_eps")],
    read: |model, config| {
        config.insert("type_vocab_size".to_owned(), rows(model, "token_types.weight").into());
        Ok(())
    },
    tensors: &[&[
        ("attn_output_norm", "post_attention_layernorm"),
        ("attn_qkv", "attn.Wqkv"),
        ("layer_output_norm", "post_mlp_layernorm"),
        ("token_embd", "model.embeddings.word_embeddings"),
        ("token_embd_norm", "model.embeddings.LayerNorm"),
        ("token_types", "model.embeddings.token_type_embeddings"),
    ]],
    direction: Direction::Bidirectional,
    ..GgufArchitecture::new("nomic-bert", "nomic_bert")
};

/// Keys of the published form, and the values that are supported.
const FIXED: &[(&str, &[&str])] = &[
    ("activation_function", &["\"swiglu\""]),
    ("mlp_fc1_bias", &["false"]),
    ("mlp_fc2_bias", &["false"]),
    ("moe_every_n_layers", &["0"]),
    ("prenorm", &["false"]),
    ("qkv_proj_bias", &["false"]),
    ("rotary_emb_fraction", &["1", "1.0"]),
    ("rotary_emb_interleaved", &["false"]),
    ("rotary_emb_scale_base", &["null"]),
    ("rotary_scaling_factor", &["null"]),
    ("use_rms_norm", &["false"]),
];

/// Keys of this architecture alone.
#[derive(Deserialize)]
struct Keys {
    type_vocab_size: Option<usize>,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    for (key, known) in FIXED {
        let value = config.keys.get(*key).map(Value::to_string);
        if let Some(value) = value.filter(|value| !known.contains(&value.as_str()) && value != "null") {
            return Err(unsupported(key, value, known.join(", ")));
        }
    }
    let Keys { type_vocab_size } = config.read()?;
    let token_types = type_vocab_size.map(|types| ModelConfig::size_of("type_vocab_size", types));
    let token_types = token_types.transpose()?;
    let config =
        ModelConfig { num_key_value_heads: None, ..config.with_norm_eps("layer_norm_eps")?.without_biases() };
    let mut spec = DecoderSpec::llama(&config)?;
    spec.norm_kind = NormKind::Layer(Bias::Present);
    spec.output_norm = OutputNorm::Absent;
    spec.output_head = OutputHead::Absent;
    spec.layers.iter_mut().for_each(|layer| layer.norms = NormPlacement::PostAdd);
    if spec.classifier.is_some() {
        return Err(unsupported("architectures", "a classifier", "NomicBertModel"));
    }
    spec.encoder = Some(EncoderSpec { token_types, embedding_norm: EmbeddingNorm::Present });
    Ok(spec)
}

fn weight_name(param: Param) -> String {
    match param {
        Param::Layer(layer, LayerParam::MlpPostNorm) => {
            format!("model.layers.{layer}.post_mlp_layernorm.weight")
        }
        Param::Layer(layer, LayerParam::MlpPostNormBias) => {
            format!("model.layers.{layer}.post_mlp_layernorm.bias")
        }
        Param::Layer(..) => hugging_face_name(param),
        other => bert::weight_name(other),
    }
}

/// The published names, in which queries, keys and values are fused, as they are in GGUF files.
fn locations(spec: &DecoderSpec, param: Param) -> Vec<TensorLocation> {
    let (layer, param) = match param {
        Param::EmbeddingNorm | Param::EmbeddingNormBias => {
            let own = weight_name(param);
            let theirs = own.replace("model.embeddings.LayerNorm", "emb_ln");
            return [own, theirs].map(TensorLocation::whole).into();
        }
        Param::Layer(layer, param) => (layer, param),
        _ => return Vec::new(),
    };
    let published = |name: &str| format!("encoder.layers.{layer}.{name}");
    let width = spec.hidden_size;
    let part = |index: usize| {
        TensorLocation::part(published("attn.Wqkv.weight"), index * width..(index + 1) * width, 3 * width)
    };
    let own = TensorLocation::whole(weight_name(Param::Layer(layer, param)));
    let of_gguf = |index: usize| {
        let name = format!("model.layers.{layer}.attn.Wqkv.weight");
        TensorLocation::part(name, index * width..(index + 1) * width, 3 * width)
    };
    let theirs = match param {
        LayerParam::Query(Piece::Weight) => return vec![own, part(0), of_gguf(0)],
        LayerParam::Key(Piece::Weight) => return vec![own, part(1), of_gguf(1)],
        LayerParam::Value(Piece::Weight) => return vec![own, part(2), of_gguf(2)],
        LayerParam::AttentionOutput(Piece::Weight) => {
            TensorLocation::whole(published("attn.out_proj.weight"))
        }
        LayerParam::Up(Piece::Weight) => TensorLocation::whole(published("mlp.fc11.weight")),
        LayerParam::Gate(Piece::Weight) => TensorLocation::whole(published("mlp.fc12.weight")),
        LayerParam::Down(Piece::Weight) => TensorLocation::whole(published("mlp.fc2.weight")),
        LayerParam::MixerPostNorm => TensorLocation::whole(published("norm1.weight")),
        LayerParam::MixerPostNormBias => TensorLocation::whole(published("norm1.bias")),
        LayerParam::MlpPostNorm => TensorLocation::whole(published("norm2.weight")),
        LayerParam::MlpPostNormBias => TensorLocation::whole(published("norm2.bias")),
        _ => return Vec::new(),
    };
    vec![own, theirs]
}
