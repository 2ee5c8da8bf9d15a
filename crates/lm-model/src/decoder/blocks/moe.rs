use std::sync::Arc;

use burn::tensor::Tensor;
use lm_kernels::{Experts, Routing};

use super::{BlockInput, LayerLoader, ResidualBlock};
use crate::checkpoint::{LayerParam, Piece};
use crate::error::{Error, Result};
use crate::nn::Linear;
use crate::spec::{ExpertGroups, ExpertsSpec, RouterScores, RouterSpec, RoutingNorm};

/// Mixture of experts: a router chooses the gated feed-forward blocks that each row goes through.
///
/// # Source
/// Outrageously Large Neural Networks, arXiv 1701.06538.
pub(crate) struct MoeMlp {
    /// Kept in a float format for any format of the experts: a small error would select another expert.
    router_logits: Linear,
    router: Router,
    experts: Experts,
}

/// Choice of experts by the router's logits.
struct Router {
    num_experts: usize,
    top_k: usize,
    spec: RouterSpec,
    /// Terms that are added to the scores in the choice only.
    correction: Option<Vec<f32>>,
}

impl MoeMlp {
    pub(crate) fn load(layer: &mut LayerLoader<'_, '_>, spec: &ExpertsSpec) -> Result<Self> {
        let (hidden, count, inner) = (layer.hidden(), spec.num_experts, spec.intermediate_size);
        let router_logits = Linear {
            weight: layer.float_matrix(LayerParam::Router(Piece::Weight), count, hidden)?,
            bias: layer.bias(spec.router.bias, LayerParam::Router, count)?,
        };
        let correction = spec.router.correction;
        let correction = correction.if_present(|| layer.values(LayerParam::RouterCorrection, count))?;
        let mut weight = |param: fn(Piece) -> LayerParam, rows, cols| {
            let param = layer.param(param(Piece::Weight));
            layer.loader.matrices(param, count, [rows, cols])
        };
        let weights = [
            weight(LayerParam::ExpertGates, inner, hidden)?,
            weight(LayerParam::ExpertUps, inner, hidden)?,
            weight(LayerParam::ExpertDowns, hidden, inner)?,
        ];
        let biases = spec.bias.if_present(|| {
            let mut bias =
                |param: fn(Piece) -> LayerParam, rows| layer.vector(param(Piece::Bias), count * rows);
            Ok::<_, Error>([
                bias(LayerParam::ExpertGates, inner)?,
                bias(LayerParam::ExpertUps, inner)?,
                bias(LayerParam::ExpertDowns, hidden)?,
            ])
        })?;
        let experts = Experts::new(count, weights, biases, spec.activation);
        let router = Router { num_experts: count, top_k: spec.top_k, spec: spec.router, correction };
        Ok(Self { router_logits, router, experts })
    }

    /// Bytes of the experts that a row is not routed to.
    pub(crate) fn inactive_bytes(&self) -> u64 {
        let Router { num_experts, top_k, .. } = self.router;
        (self.experts.bytes() / num_experts * (num_experts - top_k)) as u64
    }

    /// Returns `x`, `[rows, hidden]`, plus the experts' output for `input`.
    pub(crate) fn add_to(
        &self,
        x: Tensor<2>,
        input: BlockInput<'_>,
        residual: &ResidualBlock,
    ) -> Result<Tensor<2>> {
        let input = input.normed(); // [rows, hidden]
        let routing = self.routing(input.clone())?;
        Ok(residual.add(x, self.forward(input, routing)))
    }

    /// Routes the rows, `[rows, hidden]`, to experts.
    pub(super) fn routing(&self, input: Tensor<2>) -> Result<Routing> {
        let logits = self.router_logits.forward(input); // [rows, experts]
        Ok(self.router.route(&lm_kernels::to_host(logits)?))
    }

    /// Returns the experts' output for the rows, `[rows, hidden]`.
    pub(super) fn forward(&self, input: Tensor<2>, routing: Routing) -> Tensor<2> {
        lm_kernels::moe(input, &self.experts, &Arc::new(routing))
    }
}

/// Scores of a row's experts, computed where they are needed.
struct RowScores<'a> {
    logits: &'a [f32],
    /// Largest logit and divisor of a softmax; `None` for a sigmoid.
    softmax: Option<[f32; 2]>,
}

impl RowScores<'_> {
    fn of(&self, expert: usize) -> f32 {
        let logit = self.logits[expert];
        match self.softmax {
            None => 1.0 / (1.0 + (-logit).exp()),
            Some([largest, divisor]) => (logit - largest).exp() / divisor,
        }
    }

    fn all(&self) -> impl Iterator<Item = f32> {
        (0..self.logits.len()).map(|expert| self.of(expert))
    }
}

impl Router {
    /// Sends each row of `logits`, `[rows, num_experts]`, to the experts with the largest scores, largest
    /// first; ties go to the lower index.
    fn route(&self, logits: &[f32]) -> Routing {
        let mut routing = Routing { per_row: self.top_k, ..Routing::default() };
        let (mut ranks, mut order): (Vec<f32>, Vec<u32>) = Default::default();
        for logits in logits.chunks_exact(self.num_experts) {
            let scores = self.scores(logits);
            ranks.clear();
            self.rank(&scores, &mut ranks);
            order.clear();
            order.extend(0..self.num_experts as u32);
            let chosen = largest(&mut order, &ranks, self.top_k);
            let weights = chosen.iter().map(|&expert| scores.of(expert as usize));
            let total: f32 = weights.clone().sum();
            let divisor = match self.spec.norm {
                RoutingNorm::None => 1.0,
                RoutingNorm::SumPlus(constant) => total + constant,
                RoutingNorm::SumAtLeast(least) => total.max(least),
            };
            routing.weights.extend(weights.map(|weight| weight / divisor * self.spec.scale));
            routing.experts.extend_from_slice(chosen);
        }
        routing
    }

    fn scores<'a>(&self, logits: &'a [f32]) -> RowScores<'a> {
        if self.spec.scores == RouterScores::Sigmoid {
            return RowScores { logits, softmax: None };
        }
        let largest = logits.iter().copied().max_by(f32::total_cmp).unwrap_or_default();
        let parts = RowScores { logits, softmax: Some([largest, 1.0]) };
        // A sum over the chosen experts cancels the one over all, unless scores are compared or added to.
        let cancels = self.spec.norm == RoutingNorm::SumPlus(0.0) && self.correction.is_none();
        let divisor = if cancels { 1.0 } else { parts.all().sum() };
        RowScores { logits, softmax: Some([largest, divisor]) }
    }

    /// Appends the numbers that order a row's experts; the largest are chosen.
    fn rank(&self, scores: &RowScores<'_>, ranks: &mut Vec<f32>) {
        match &self.correction {
            // The order of the logits, of which distant ones may have equal scores.
            None => ranks.extend_from_slice(scores.logits),
            Some(correction) => ranks.extend(scores.all().zip(correction).map(|(score, term)| score + term)),
        }
        if let Some(groups) = self.spec.groups {
            let by_score = if self.correction.is_some() { ranks.clone() } else { scores.all().collect() };
            exclude_groups(&by_score, ranks, groups);
        }
    }
}

/// Sets the ranks of experts outside of a row's groups to the least one.
fn exclude_groups(scores: &[f32], ranks: &mut [f32], groups: ExpertGroups) {
    let size = scores.len() / groups.count;
    let best = |group: &[f32]| {
        let (first, second) =
            group.iter().fold((f32::NEG_INFINITY, f32::NEG_INFINITY), |(first, second), &score| {
                if score > first { (score, first) } else { (first, second.max(score)) }
            });
        if groups.best == 1 { first } else { first + second }
    };
    let sums: Vec<f32> = scores.chunks_exact(size).map(best).collect();
    let mut order: Vec<u32> = (0..groups.count as u32).collect();
    let kept = largest(&mut order, &sums, groups.top_k);
    for (group, ranks) in ranks.chunks_exact_mut(size).enumerate() {
        if !kept.contains(&(group as u32)) {
            ranks.fill(f32::NEG_INFINITY);
        }
    }
}

/// Returns the `count` of the indices with the largest values, largest first; ties go to the lower index.
fn largest<'a>(order: &'a mut [u32], values: &[f32], count: usize) -> &'a mut [u32] {
    let value = |index: u32| values[index as usize];
    let by_value = |a: &u32, b: &u32| value(*b).total_cmp(&value(*a)).then(a.cmp(b));
    if count < order.len() {
        order.select_nth_unstable_by(count, by_value);
    }
    let chosen = &mut order[..count];
    chosen.sort_unstable_by(by_value);
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Bias;

    fn route(logits: &[f32], num_experts: usize, top_k: usize, spec: RouterSpec) -> Routing {
        Router { num_experts, top_k, spec, correction: None }.route(logits)
    }

    #[test]
    fn rows_use_the_experts_with_the_largest_logits() {
        let logits = [0.0, 2.0, 1.0, 2.0, /* the next row */ -1.0, -3.0, -2.0, -4.0];
        let routing = route(&logits, 4, 2, RouterSpec::softmax(true));
        assert_eq!(routing.experts, [1, 3, 0, 2]);
        let second = 1.0 / (1.0 + (-1.0_f32).exp());
        let expected = [0.5, 0.5, second, 1.0 - second];
        assert!(routing.weights.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-6));
    }

    #[test]
    fn softmax_over_all_experts_is_not_renormalized() {
        let logits = [3.0_f32.ln(), 0.0, 2.0_f32.ln()];
        let routing = route(&logits, 3, 2, RouterSpec::softmax(false));
        assert_eq!(routing.experts, [0, 2]);
        assert!((routing.weights[0] - 0.5).abs() < 1e-6 && (routing.weights[1] - 1.0 / 3.0).abs() < 1e-6);
        let all = route(&logits, 3, 3, RouterSpec::softmax(false));
        assert_eq!(all.experts, [0, 2, 1]);
        assert!((all.weights.iter().sum::<f32>() - 1.0).abs() < 1e-6);
    }

    #[test]
    fn nan_logits_choose_an_expert() {
        let routing = route(&[f32::NAN, 1.0, f32::NEG_INFINITY], 3, 2, RouterSpec::softmax(false));
        assert_eq!(routing.experts, [0, 1]);
    }

    /// Scores 0.6, 0.5, 0.2, 0.5, 0.4, 0.4 in three groups.
    fn corrected(groups: Option<ExpertGroups>, norm: RoutingNorm) -> Routing {
        let scores = [0.6_f32, 0.5, 0.2, 0.5, 0.4, 0.4];
        let logits = scores.map(|score| (score / (1.0 - score)).ln());
        let spec = RouterSpec {
            scores: RouterScores::Sigmoid,
            correction: Bias::Present,
            groups,
            norm,
            scale: 2.0,
            ..RouterSpec::softmax(false)
        };
        let correction = Some(vec![-0.5, 0.0, 0.0, 0.35, 0.3, 0.2]);
        Router { num_experts: 6, top_k: 2, spec, correction }.route(&logits)
    }

    fn assert_weights(routing: &Routing, expected: [f32; 2]) {
        let near = |(got, expected): (&f32, f32)| (got - expected).abs() < 1e-6;
        assert!(routing.weights.iter().zip(expected).all(near), "{:?}", routing.weights);
    }

    #[test]
    fn corrections_count_in_the_choice_only() {
        let routing = corrected(None, RoutingNorm::None);
        assert_eq!(routing.experts, [3, 4]);
        assert_weights(&routing, [1.0, 0.8]);
        assert_weights(&corrected(None, RoutingNorm::SumPlus(0.1)), [1.0, 0.8]);
        assert_weights(&corrected(None, RoutingNorm::SumAtLeast(2.0)), [0.5, 0.4]);
        assert_weights(&corrected(None, RoutingNorm::SumAtLeast(0.1)), [10.0 / 9.0, 8.0 / 9.0]);
    }

    #[test]
    fn groups_are_chosen_by_their_best_two() {
        let groups = Some(ExpertGroups { count: 3, top_k: 1, best: 2 });
        assert_eq!(corrected(groups, RoutingNorm::None).experts, [4, 5]);
        let groups = Some(ExpertGroups { count: 2, top_k: 1, best: 2 });
        assert_eq!(corrected(groups, RoutingNorm::None).experts, [3, 4]);
    }

    #[test]
    fn groups_are_chosen_by_their_best_score() {
        // The two best scores of the second group are more together, the best one is in the first.
        let logits = [3.0, 0.0, 2.5, 2.4];
        let routing = |best| {
            let groups = Some(ExpertGroups { count: 2, top_k: 1, best });
            route(&logits, 4, 1, RouterSpec { groups, ..RouterSpec::softmax(false) }).experts
        };
        assert_eq!((routing(1), routing(2)), (vec![0], vec![2]));
    }
}
