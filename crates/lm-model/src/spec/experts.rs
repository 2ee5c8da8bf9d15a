use lm_formats::Result;
use lm_kernels::Activation;

use super::{Bias, linear_params};
use crate::checkpoint::LayerParam;
use crate::config::invalid;

/// Mixture of experts: gated blocks of one shape; each row is routed to a few.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExpertsSpec {
    pub(crate) num_experts: usize,
    /// Number of experts per row.
    pub(crate) top_k: usize,
    /// Width inside an expert.
    pub(crate) intermediate_size: usize,
    pub(crate) activation: Activation,
    /// Bias of the experts' projections.
    pub(crate) bias: Bias,
    pub(crate) router_bias: Bias,
    pub(crate) router_softmax: RouterSoftmax,
}

/// Logits that the softmax of the routing weights covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouterSoftmax {
    /// Softmax over all experts.
    AllExperts,
    /// Softmax over the top-k experts; equals [`RouterSoftmax::AllExperts`] normalised to a sum of 1.
    TopK,
}

/// Maximum number of experts of a layer; the largest published models have 512.
const MAX_EXPERTS: usize = 1 << 16;
/// Maximum number of weights of one projection over all experts of a layer, so that the sum over all layers
/// does not overflow.
const MAX_WEIGHTS: usize = 1 << 48;

impl ExpertsSpec {
    /// Checks the sizes; `keys` are their config.json keys.
    pub(crate) fn check(&self, keys: ExpertKeys, hidden_size: usize) -> Result<()> {
        if !(1..=MAX_EXPERTS).contains(&self.num_experts) {
            return Err(invalid(keys.num_experts, self.num_experts, format!("1 to {MAX_EXPERTS}")));
        }
        if !(1..=self.num_experts).contains(&self.top_k) {
            let expected = format!("1 to {} = {}", keys.num_experts, self.num_experts);
            return Err(invalid(keys.top_k, self.top_k, expected));
        }
        if self.intermediate_size == 0 {
            return Err(invalid(keys.intermediate_size, 0, "1 or more"));
        }
        let rows = self.num_experts.checked_mul(self.intermediate_size.max(hidden_size));
        match rows.and_then(|rows| rows.checked_mul(self.intermediate_size.max(hidden_size))) {
            Some(..=MAX_WEIGHTS) => Ok(()),
            _ => {
                let expected = format!("at most {MAX_WEIGHTS} weights in all experts of a layer");
                Err(invalid(keys.intermediate_size, self.intermediate_size, expected))
            }
        }
    }

    /// Number of weights of the experts that a row is not routed to.
    pub(super) fn inactive_parameters(&self, hidden: usize) -> u64 {
        let of_one = 3_u64.saturating_mul(hidden as u64).saturating_mul(self.intermediate_size as u64);
        of_one.saturating_mul((self.num_experts - self.top_k) as u64)
    }

    pub(super) fn params(&self, hidden: usize) -> Vec<(LayerParam, Vec<usize>)> {
        let Self { num_experts: count, intermediate_size: inner, bias, .. } = *self;
        [
            linear_params(LayerParam::Router, [hidden, count], self.router_bias),
            linear_params(LayerParam::ExpertGates, [hidden, count * inner], bias),
            linear_params(LayerParam::ExpertUps, [hidden, count * inner], bias),
            linear_params(LayerParam::ExpertDowns, [inner, count * hidden], bias),
        ]
        .concat()
    }
}

/// Config.json keys of an architecture's expert sizes.
#[derive(Clone, Copy)]
pub(crate) struct ExpertKeys {
    pub(crate) num_experts: &'static str,
    pub(crate) top_k: &'static str,
    pub(crate) intermediate_size: &'static str,
}
