//! DistilBERT: BERT without token types, under names of its own. Source: arXiv 1910.01108; `config.json` of
//! sentence-transformers/msmarco-distilbert-base-v4; `DistilBertConfig` of transformers for the defaults.

use lm_formats::Result;
use lm_kernels::Activation;
use serde::Deserialize;

use super::bert::{self, IGNORED_SUFFIXES};
use super::{Architecture, BASE};
use crate::checkpoint::{LayerParam, Param, hugging_face_name};
use crate::config::{ModelConfig, unsupported};
use crate::spec::{ClassifierActivation, DecoderSpec, PositionTable};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["distilbert"],
    spec,
    weight_name,
    ignored_suffixes: IGNORED_SUFFIXES,
    ignored_prefixes: &["vocab_"],
    renamed_keys: &[
        ("activation", "hidden_act"),
        ("dim", "hidden_size"),
        ("hidden_dim", "intermediate_size"),
        ("n_heads", "num_attention_heads"),
        ("n_layers", "num_hidden_layers"),
    ],
    defaults: r#"{
        "vocab_size": 30522, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 6,
        "num_attention_heads": 12, "hidden_act": "gelu", "max_position_embeddings": 512,
        "layer_norm_eps": 1e-12, "rms_norm_eps": 1e-12, "sinusoidal_pos_embds": false
    }"#,
    ..BASE
};

/// Keys of this architecture alone.
#[derive(Deserialize)]
struct Keys {
    /// True if the table of positions was not trained; files contain it in either case.
    sinusoidal_pos_embds: bool,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let Keys { sinusoidal_pos_embds } = config.read()?;
    if sinusoidal_pos_embds {
        return Err(unsupported("sinusoidal_pos_embds", true, "false"));
    }
    let mut spec = bert::post_norm(config)?;
    spec.learned_positions = Some(PositionTable { rows: config.max_position_embeddings, first: 0 });
    spec.classifier = bert::classifier(config, ClassifierActivation::Of(Activation::Relu))?;
    Ok(spec)
}

fn weight_name(param: Param) -> String {
    let (layer, param) = match param {
        Param::ClassifierDense(piece) => return format!("pre_classifier.{piece}"),
        Param::Layer(layer, param) => (layer, param),
        other => return bert::weight_name(other),
    };
    let name = match param {
        LayerParam::Query(piece) => format!("attention.q_lin.{piece}"),
        LayerParam::Key(piece) => format!("attention.k_lin.{piece}"),
        LayerParam::Value(piece) => format!("attention.v_lin.{piece}"),
        LayerParam::AttentionOutput(piece) => format!("attention.out_lin.{piece}"),
        LayerParam::MixerPostNorm => "sa_layer_norm.weight".into(),
        LayerParam::MixerPostNormBias => "sa_layer_norm.bias".into(),
        LayerParam::Up(piece) => format!("ffn.lin1.{piece}"),
        LayerParam::Down(piece) => format!("ffn.lin2.{piece}"),
        LayerParam::MlpPostNorm => "output_layer_norm.weight".into(),
        LayerParam::MlpPostNormBias => "output_layer_norm.bias".into(),
        other => return hugging_face_name(Param::Layer(layer, other)),
    };
    format!("model.layers.{layer}.{name}")
}
