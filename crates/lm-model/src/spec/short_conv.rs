use lm_kernels::LayerCache;

use super::{Bias, linear_params};
use crate::weights::{LayerParam, Piece};

/// A short convolution between two gates, in field words; it has as many channels as a row has elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShortConvLayer {
    /// Tokens that a result is made of, the row's own included.
    pub(crate) kernel: usize,
    /// Of the convolution and of the projections around it.
    pub(crate) bias: Bias,
}

impl ShortConvLayer {
    pub(super) fn cache(&self, hidden: usize) -> LayerCache {
        LayerCache::State { len: lm_kernels::CausalConv::state_elements(self.kernel, hidden) }
    }

    pub(super) fn params(&self, hidden: usize) -> Vec<(LayerParam, Vec<usize>)> {
        let mut params = linear_params(LayerParam::ConvInput, [hidden, 3 * hidden], self.bias);
        params.push((LayerParam::ConvTaps(Piece::Weight), vec![hidden, self.kernel]));
        if self.bias == Bias::Present {
            params.push((LayerParam::ConvTaps(Piece::Bias), vec![hidden]));
        }
        params.extend(linear_params(LayerParam::ConvOutput, [hidden, hidden], self.bias));
        params
    }
}
