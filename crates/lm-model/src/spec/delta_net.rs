use lm_kernels::{DeltaNetSpec, LayerCache};

use super::{Bias, linear_params};
use crate::checkpoint::{LayerParam, Piece};

/// Gated delta net, preceded by a convolution and followed by a gated norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeltaNetLayer {
    pub(crate) heads: DeltaNetSpec,
    /// Width of the convolution in tokens, the row's own included.
    pub(crate) kernel: usize,
}

impl DeltaNetLayer {
    /// Width of all value heads of a row.
    pub(crate) fn value_width(&self) -> usize {
        self.heads.num_value_heads * self.heads.value_dim
    }

    pub(super) fn cache(&self) -> LayerCache {
        LayerCache::State { len: self.heads.state_elements(self.kernel) }
    }

    pub(super) fn params(&self, hidden: usize) -> Vec<(LayerParam, Vec<usize>)> {
        let (width, values, heads) = (self.heads.width(), self.value_width(), self.heads.num_value_heads);
        let mut params = vec![
            (LayerParam::Conv1d(Piece::Weight), vec![width, self.kernel]),
            (LayerParam::DeltaALog, vec![heads]),
            (LayerParam::DeltaDtBias, vec![heads]),
            (LayerParam::DeltaNorm, vec![self.heads.value_dim]),
        ];
        for (param, shape) in [
            (LayerParam::DeltaQkv as fn(Piece) -> LayerParam, [hidden, width]),
            (LayerParam::DeltaGate, [hidden, values]),
            (LayerParam::DeltaA, [hidden, heads]),
            (LayerParam::DeltaBeta, [hidden, heads]),
            (LayerParam::DeltaOutput, [values, hidden]),
        ] {
            params.extend(linear_params(param, shape, Bias::Absent));
        }
        params
    }
}
