//! RoBERTa and XLM-RoBERTa: BERT whose positions start after the padding token's id, with another classifier.
//! Source: RoBERTa (arXiv 1907.11692), XLM-R (arXiv 1911.02116); `config.json` of BAAI/bge-m3,
//! intfloat/multilingual-e5-small and BAAI/bge-reranker-v2-m3; `XLMRobertaConfig` of transformers for the
//! defaults.

use lm_formats::Result;
use serde::Deserialize;

use super::bert::{self, IGNORED_SUFFIXES};
use super::{Architecture, BASE};
use crate::checkpoint::Param;
use crate::config::ModelConfig;
use crate::spec::DecoderSpec;

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["roberta", "camembert", "xlm-roberta"],
    spec,
    weight_name,
    ignored_suffixes: IGNORED_SUFFIXES,
    ignored_prefixes: &["lm_head.", "model.pooler."],
    defaults: r#"{
        "vocab_size": 30522, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
        "num_attention_heads": 12, "hidden_act": "gelu", "max_position_embeddings": 512, "type_vocab_size": 2,
        "layer_norm_eps": 1e-12, "rms_norm_eps": 1e-12, "pad_token_id": 1
    }"#,
    ..BASE
};

/// Keys of this architecture alone.
#[derive(Deserialize)]
struct Keys {
    /// Id of the padding token, which is also a row of the table of positions.
    pad_token_id: usize,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let Keys { pad_token_id } = config.read()?;
    bert::encoder(config, pad_token_id.saturating_add(1))
}

fn weight_name(param: Param) -> String {
    match param {
        Param::ClassifierDense(piece) => format!("classifier.dense.{piece}"),
        Param::Classifier(piece) => format!("classifier.out_proj.{piece}"),
        other => bert::weight_name(other),
    }
}
