//! BERT: an encoder with post-norm blocks, learned absolute positions, token types and biases everywhere.
//! Source: BERT (arXiv 1810.04805); `config.json` of sentence-transformers/all-MiniLM-L6-v2 and
//! BAAI/bge-small-en-v1.5; `BertConfig` of transformers for the defaults.

use lm_formats::Result;
use serde::Deserialize;

use super::{Architecture, BASE};
use crate::checkpoint::{LayerParam, Param};
use crate::config::{ModelConfig, unsupported};
use crate::gguf::{GgufArchitecture, put_classifier, rows};
use crate::spec::{
    Bias, ClassifierActivation, ClassifierDense, ClassifierNorm, ClassifierSpec, DecoderSpec, Direction,
    EmbeddingNorm, EncoderSpec, Mlp, NormKind, NormPlacement, OutputHead, OutputNorm, Pooling, PositionTable,
};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["bert"],
    spec,
    weight_name,
    ignored_suffixes: IGNORED_SUFFIXES,
    ignored_prefixes: &["cls.", "model.pooler."],
    gguf: &[&GGUF],
    defaults: DEFAULTS,
    ..BASE
};

/// Also RoBERTa's, whose files leave out the rows of positions before the first.
const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[("attention.layer_norm_epsilon", "layer_norm_eps")],
    rope: |_, _| Ok(()),
    read: |model, config| {
        config.insert("type_vocab_size".to_owned(), rows(model, "token_types.weight").into());
        if let Some(positions) = rows(model, "position_embd.weight") {
            config.insert("max_position_embeddings".to_owned(), positions.into());
        }
        put_classifier(model, config, "cls.output.weight");
        Ok(())
    },
    tensors: &[&[
        ("attn_k", "attention.self.key"),
        ("attn_output", "attention.output.dense"),
        ("attn_output_norm", "attention.output.LayerNorm"),
        ("attn_q", "attention.self.query"),
        ("attn_v", "attention.self.value"),
        ("cls", "model.pooler.dense"),
        ("cls.output", "classifier"),
        ("ffn_down", "output.dense"),
        ("ffn_up", "intermediate.dense"),
        ("layer_output_norm", "output.LayerNorm"),
        ("position_embd", "model.embeddings.position_embeddings"),
        ("token_embd", "model.embeddings.word_embeddings"),
        ("token_embd_norm", "model.embeddings.LayerNorm"),
        ("token_types", "model.embeddings.token_type_embeddings"),
    ]],
    direction: Direction::Bidirectional,
    ..GgufArchitecture::new("bert", "bert")
};

/// Buffers that older checkpoints contain.
pub(super) const IGNORED_SUFFIXES: &[&str] = &["embeddings.position_ids", "embeddings.token_type_ids"];

/// Values of keys that files omit, of BERT and RoBERTa.
pub(super) const DEFAULTS: &str = r#"{
    "vocab_size": 30522, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
    "num_attention_heads": 12, "hidden_act": "gelu", "max_position_embeddings": 512, "type_vocab_size": 2,
    "layer_norm_eps": 1e-12, "rms_norm_eps": 1e-12, "pad_token_id": 0
}"#;

/// Keys of BERT and its relatives.
#[derive(Deserialize)]
struct Keys {
    /// Number of token types.
    type_vocab_size: Option<usize>,
    /// Kind of positions in older files.
    position_embedding_type: Option<String>,
    #[serde(default)]
    is_decoder: bool,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    encoder(config, 0)
}

/// Reads the config of an encoder with post-norm blocks, whose first position is a row of the table.
pub(super) fn encoder(config: &ModelConfig, first_position: usize) -> Result<DecoderSpec> {
    let Keys { type_vocab_size, position_embedding_type, is_decoder } = config.read()?;
    if let Some(kind) = position_embedding_type.filter(|kind| kind != "absolute") {
        return Err(unsupported("position_embedding_type", kind, "absolute"));
    }
    if is_decoder {
        return Err(unsupported("is_decoder", true, "false"));
    }
    let token_types = type_vocab_size.map(|types| ModelConfig::size_of("type_vocab_size", types));
    let rows = config.max_position_embeddings;
    let context_len = ModelConfig::size_of("max_position_embeddings", rows.saturating_sub(first_position))?;
    let mut spec = post_norm(config)?;
    spec.context_len = context_len;
    spec.learned_positions = Some(PositionTable { rows, first: first_position });
    spec.encoder =
        Some(EncoderSpec { token_types: token_types.transpose()?, embedding_norm: EmbeddingNorm::Present });
    Ok(spec)
}

/// Reads the config of an encoder of post-norm blocks with biases, without its inputs: no positions.
pub(super) fn post_norm(config: &ModelConfig) -> Result<DecoderSpec> {
    let config = ModelConfig {
        attention_bias: true,
        mlp_bias: true,
        num_key_value_heads: None,
        ..config.with_norm_eps("layer_norm_eps")?
    };
    let mut spec = DecoderSpec::without_rope(&config)?;
    spec.norm_kind = NormKind::Layer(Bias::Present);
    spec.output_norm = OutputNorm::Absent;
    spec.output_head = OutputHead::Absent;
    let mlp = Mlp::plain(&config)?;
    for layer in &mut spec.layers {
        layer.norms = NormPlacement::PostAdd;
        layer.mlp = mlp.clone();
    }
    spec.classifier = classifier(&config, ClassifierActivation::Tanh)?;
    spec.encoder = Some(EncoderSpec { embedding_norm: EmbeddingNorm::Present, ..EncoderSpec::PLAIN });
    Ok(spec)
}

/// Classifier of the first token: a dense layer and a projection, both with a bias.
pub(super) fn classifier(
    config: &ModelConfig,
    activation: ClassifierActivation,
) -> Result<Option<ClassifierSpec>> {
    let dense = ClassifierDense { activation, bias: Bias::Present, norm: ClassifierNorm::Absent };
    let classifier =
        |labels| ClassifierSpec { labels, pooling: Pooling::Cls, dense: Some(dense), bias: Bias::Present };
    Ok(ClassifierSpec::labels(config)?.map(classifier))
}

/// Names of BERT's parameters, whose layers are `encoder.layer.` in files.
pub(super) fn weight_name(param: Param) -> String {
    let (layer, param) = match param {
        Param::Embedding => return "model.embeddings.word_embeddings.weight".into(),
        Param::PositionEmbedding => return "model.embeddings.position_embeddings.weight".into(),
        Param::TokenTypeEmbedding => return "model.embeddings.token_type_embeddings.weight".into(),
        Param::EmbeddingNorm => return "model.embeddings.LayerNorm.weight".into(),
        Param::EmbeddingNormBias => return "model.embeddings.LayerNorm.bias".into(),
        Param::ClassifierDense(piece) => return format!("model.pooler.dense.{piece}"),
        Param::Classifier(piece) => return format!("classifier.{piece}"),
        Param::Layer(layer, param) => (layer, param),
        other => return crate::checkpoint::hugging_face_name(other),
    };
    let name = match param {
        LayerParam::Query(piece) => format!("attention.self.query.{piece}"),
        LayerParam::Key(piece) => format!("attention.self.key.{piece}"),
        LayerParam::Value(piece) => format!("attention.self.value.{piece}"),
        LayerParam::AttentionOutput(piece) => format!("attention.output.dense.{piece}"),
        LayerParam::MixerPostNorm => "attention.output.LayerNorm.weight".into(),
        LayerParam::MixerPostNormBias => "attention.output.LayerNorm.bias".into(),
        LayerParam::Up(piece) => format!("intermediate.dense.{piece}"),
        LayerParam::Down(piece) => format!("output.dense.{piece}"),
        LayerParam::MlpPostNorm => "output.LayerNorm.weight".into(),
        LayerParam::MlpPostNormBias => "output.LayerNorm.bias".into(),
        other => return crate::checkpoint::hugging_face_name(Param::Layer(layer, other)),
    };
    format!("model.layers.{layer}.{name}")
}
