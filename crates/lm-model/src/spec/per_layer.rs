use lm_kernels::Activation;
use lm_tokenizer::TokenId;

use super::NamedShape;
use crate::checkpoint::{LayerParam, Param};

/// Per-layer embeddings, mixed in at the end of each layer.
///
/// # Source
/// Gemma 3n's and Gemma 4's modelling code in transformers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PerLayerInputs {
    /// Number of ids in the table; larger ids use the row of id 0.
    pub(crate) vocab_size: usize,
    /// Width of one layer's slice of a row.
    pub(crate) size: usize,
    /// Id whose row is used for embedding rows from outside.
    pub(crate) of_embeddings: TokenId,
    pub(crate) activation: Activation,
}

impl PerLayerInputs {
    pub(super) fn params(&self, hidden: usize, layers: usize) -> Vec<(Param, Vec<usize>)> {
        let width = layers * self.size;
        vec![
            (Param::PerLayerEmbedding, vec![self.vocab_size, width]),
            (Param::PerLayerProjection, vec![width, hidden]),
            (Param::PerLayerProjectionNorm, vec![self.size]),
        ]
    }

    pub(super) fn layer_params(&self, hidden: usize) -> Vec<NamedShape> {
        vec![
            (LayerParam::PerLayerGate, vec![self.size, hidden]),
            (LayerParam::PerLayerOutput, vec![hidden, self.size]),
            (LayerParam::PerLayerNorm, vec![hidden]),
        ]
    }
}
