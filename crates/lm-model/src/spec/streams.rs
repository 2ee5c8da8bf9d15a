use lm_kernels::Activation;

use super::NamedShape;
use crate::TokenId;
use crate::weights::{LayerParam, Param};

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

/// AltUp: several residual streams between the layers, of which a layer runs one and predicts the others; with LAuReL, a low-rank
/// path parallel to attention.
///
/// # Source
/// Alternating Updates, arXiv 2301.13310; LAuReL, arXiv 2411.07501; Gemma 3n's modelling code in transformers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Streams {
    pub(crate) count: usize,
    /// Index of the stream that layers run.
    pub(crate) active: usize,
    /// Scale of the active stream where the per-layer input reads it.
    pub(crate) correction_scale: CorrectionScale,
    pub(crate) laurel_rank: usize,
}

/// Presence of learned factors on the corrected active stream where the per-layer input reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CorrectionScale {
    Unused,
    Used,
}

impl Streams {
    pub(super) fn params(&self, hidden: usize) -> Vec<(Param, Vec<usize>)> {
        let others = 0..self.count - 1;
        let matrices =
            others.flat_map(|stream| [Param::AltUpProjection(stream), Param::AltUpUnembed(stream)]);
        matrices.map(|param| (param, vec![hidden, hidden])).collect()
    }

    pub(super) fn layer_params(&self, hidden: usize) -> Vec<NamedShape> {
        let Self { count, laurel_rank: rank, .. } = *self;
        let mut params = vec![
            (LayerParam::AltUpRouterNorm, vec![hidden]),
            (LayerParam::AltUpRouter, vec![count, hidden]),
            (LayerParam::AltUpPrediction, vec![count * count, count]),
            (LayerParam::AltUpCorrection, vec![count, count]),
            (LayerParam::LaurelLeft, vec![rank, hidden]),
            (LayerParam::LaurelRight, vec![hidden, rank]),
            (LayerParam::LaurelNorm, vec![hidden]),
        ];
        if self.correction_scale == CorrectionScale::Used {
            params.push((LayerParam::AltUpCorrectionScale, vec![hidden]));
        }
        params
    }
}
