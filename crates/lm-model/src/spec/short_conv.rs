use lm_kernels::LayerCache;

use super::{Bias, linear_params};
use crate::checkpoint::{LayerParam, Piece};

/// Gated short convolution with one channel for each element of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShortConvLayer {
    /// Width in tokens, the row's own included.
    pub(crate) kernel: usize,
    /// Bias of the convolution and of the projections around it.
    pub(crate) bias: Bias,
}

impl ShortConvLayer {
    pub(super) fn cache(&self, hidden: usize) -> LayerCache {
        LayerCache::State { len: lm_kernels::CausalConv::state_elements(self.kernel, hidden) }
    }

    pub(super) fn params(&self, hidden: usize) -> Vec<(LayerParam, Vec<usize>)> {
        let mut params = linear_params(LayerParam::ConvInput, [hidden, 3 * hidden], self.bias);
        params.push((LayerParam::Conv1d(Piece::Weight), vec![hidden, self.kernel]));
        if self.bias == Bias::Present {
            params.push((LayerParam::Conv1d(Piece::Bias), vec![hidden]));
        }
        params.extend(linear_params(LayerParam::ConvOutput, [hidden, hidden], self.bias));
        params
    }
}
