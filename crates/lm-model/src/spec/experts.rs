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
    pub(crate) router: RouterSpec,
}

/// Choice of a row's experts, and their routing weights: the scores of the chosen ones, normed, times
/// `scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RouterSpec {
    /// Bias of the logits.
    pub(crate) bias: Bias,
    pub(crate) scores: RouterScores,
    /// Presence of a term for each expert that is added to its score in the choice only.
    pub(crate) correction: Bias,
    pub(crate) groups: Option<ExpertGroups>,
    pub(crate) norm: RoutingNorm,
    pub(crate) scale: f32,
}

/// Function from the router's logits to the experts' scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouterScores {
    /// Softmax over all experts.
    Softmax,
    /// Sigmoid of each logit.
    Sigmoid,
}

/// Normalisation of the scores of a row's experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RoutingNorm {
    /// Scores as they are.
    None,
    /// Divided by their sum and this.
    SumPlus(f32),
    /// Divided by their sum, or by this if the sum is less.
    SumAtLeast(f32),
}

/// Group-limited routing: a row's experts are in its best groups, by the sum of each group's best scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExpertGroups {
    /// Number of groups, which have equal numbers of consecutive experts.
    pub(crate) count: usize,
    /// Number of groups per row.
    pub(crate) top_k: usize,
    /// Number of best scores that are summed, 1 or 2.
    pub(crate) best: usize,
}

impl RouterSpec {
    /// Softmax over all experts; if `normed`, the top-k scores are divided by their sum, which is a softmax
    /// over the top-k logits.
    pub(crate) fn softmax(normed: bool) -> Self {
        Self {
            bias: Bias::Absent,
            scores: RouterScores::Softmax,
            correction: Bias::Absent,
            groups: None,
            norm: if normed { RoutingNorm::SumPlus(0.0) } else { RoutingNorm::None },
            scale: 1.0,
        }
    }

    /// Checks that each group has experts, and the groups of a row enough of them.
    fn check(&self, keys: ExpertKeys, experts: &ExpertsSpec) -> Result<()> {
        let Some(ExpertGroups { count, top_k, best }) = self.groups else { return Ok(()) };
        let all = experts.num_experts;
        if count == 0 || !all.is_multiple_of(count) || all / count < best {
            let expected =
                format!("a divisor of {} = {all} with {best} experts or more in a group", keys.num_experts);
            return Err(invalid("n_group", count, expected));
        }
        if !(1..=count).contains(&top_k) || top_k * (all / count) < experts.top_k {
            let expected = format!("1 to n_group = {count}, with {} experts or more in them", experts.top_k);
            return Err(invalid("topk_group", top_k, expected));
        }
        Ok(())
    }
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
        self.router.check(keys, self)?;
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
        let correction = match self.router.correction {
            Bias::Absent => Vec::new(),
            Bias::Present => vec![(LayerParam::RouterCorrection, vec![count])],
        };
        [
            correction,
            linear_params(LayerParam::Router, [hidden, count], self.router.bias),
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

/// Keys of most architectures.
pub(crate) const EXPERT_KEYS: ExpertKeys = ExpertKeys {
    num_experts: "num_experts",
    top_k: "num_experts_per_tok",
    intermediate_size: "moe_intermediate_size",
};
