use super::NamedShape;
use crate::checkpoint::{LayerParam, Param};

/// AltUp: several residual streams between the layers; a layer runs one and predicts the others. With LAuReL,
/// a low-rank path parallel to attention.
///
/// # Source
/// Alternating Updates, arXiv 2301.13310; LAuReL, arXiv 2411.07501; Gemma 3n's modelling code in
/// transformers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AltUpSpec {
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

impl AltUpSpec {
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
