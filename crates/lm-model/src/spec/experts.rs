use lm_kernels::Activation;

use super::{Bias, linear_params};
use crate::Result;
use crate::config::invalid;
use crate::weights::LayerParam;

/// Many gated blocks of one shape, of which each row goes through a few: a mixture of experts, in field words.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExpertsSpec {
    pub(crate) num_experts: usize,
    /// How many of them a row goes through.
    pub(crate) experts_per_row: usize,
    /// Width inside one of them.
    pub(crate) intermediate_size: usize,
    pub(crate) activation: Activation,
    /// Of the experts' projections.
    pub(crate) bias: Bias,
    pub(crate) router_bias: Bias,
    pub(crate) shares: Shares,
}

/// What the result of a chosen expert counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shares {
    /// Its part of a softmax over all experts.
    OfAll,
    /// Its part of a softmax over the chosen ones, which is the same as theirs of [`Shares::OfAll`] normed to a sum of 1.
    OfChosen,
}

/// Most experts of a layer; the largest published models have 512.
const MAX_EXPERTS: usize = 1 << 16;
/// Most weights of a projection of all experts of a layer: those of all layers can be counted.
const MAX_WEIGHTS: usize = 1 << 48;

impl ExpertsSpec {
    /// Checks sizes, which came under these keys of config.json.
    pub(crate) fn check(&self, keys: ExpertKeys, hidden_size: usize) -> Result<()> {
        if !(1..=MAX_EXPERTS).contains(&self.num_experts) {
            return Err(invalid(keys.num_experts, self.num_experts, format!("1 to {MAX_EXPERTS}")));
        }
        if !(1..=self.num_experts).contains(&self.experts_per_row) {
            let expected = format!("1 to {} = {}", keys.num_experts, self.num_experts);
            return Err(invalid(keys.experts_per_row, self.experts_per_row, expected));
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

    /// Weights of the experts that a row does not go through.
    pub(super) fn idle_parameters(&self, hidden: usize) -> u64 {
        let of_one = 3_u64.saturating_mul(hidden as u64).saturating_mul(self.intermediate_size as u64);
        of_one.saturating_mul((self.num_experts - self.experts_per_row) as u64)
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

/// The keys of config.json that an architecture has the sizes of its experts under.
#[derive(Clone, Copy)]
pub(crate) struct ExpertKeys {
    pub(crate) num_experts: &'static str,
    pub(crate) experts_per_row: &'static str,
    pub(crate) intermediate_size: &'static str,
}
