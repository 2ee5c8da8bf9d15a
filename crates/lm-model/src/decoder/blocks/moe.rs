use std::sync::Arc;

use burn::tensor::Tensor;
use lm_kernels::{Experts, Routing};

use super::{LayerLoader, ResidualBlock};
use crate::checkpoint::{LayerParam, Piece};
use crate::error::{Error, Result};
use crate::nn::Linear;
use crate::spec::{ExpertsSpec, RouterSoftmax};

/// Mixture of experts: a router chooses the gated feed-forward blocks that each row goes through.
///
/// # Source
/// Outrageously Large Neural Networks, arXiv 1701.06538.
pub(crate) struct MoeMlp {
    /// Kept in a float format for any format of the experts: a small error would select another expert.
    router: Linear,
    experts: Experts,
    num_experts: usize,
    top_k: usize,
    router_softmax: RouterSoftmax,
}

impl MoeMlp {
    pub(crate) fn load(layer: &mut LayerLoader<'_, '_>, spec: &ExpertsSpec) -> Result<Self> {
        let (hidden, count, inner) = (layer.hidden(), spec.num_experts, spec.intermediate_size);
        let router = Linear {
            weight: layer.float_matrix(LayerParam::Router(Piece::Weight), count, hidden)?,
            bias: layer.bias(spec.router_bias, LayerParam::Router, count)?,
        };
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
        Ok(Self {
            router,
            experts,
            num_experts: count,
            top_k: spec.top_k,
            router_softmax: spec.router_softmax,
        })
    }

    /// Bytes of the experts that a row is not routed to.
    pub(crate) fn inactive_bytes(&self) -> u64 {
        (self.experts.bytes() / self.num_experts * (self.num_experts - self.top_k)) as u64
    }

    /// Returns `x`, `[rows, hidden]`, plus the experts' output.
    pub(crate) fn add_to(&self, x: Tensor<2>, residual: &ResidualBlock) -> Result<Tensor<2>> {
        let input = residual.input(x.clone()).normed(); // [rows, hidden]
        let routing = self.routing(input.clone())?;
        Ok(residual.add(x, self.forward(input, routing)))
    }

    /// Routes the rows, `[rows, hidden]`, to experts.
    pub(super) fn routing(&self, input: Tensor<2>) -> Result<Routing> {
        let logits = self.router.forward(input); // [rows, experts]
        let logits = lm_kernels::to_host(logits)?;
        Ok(route(&logits, self.num_experts, self.top_k, self.router_softmax))
    }

    /// Returns the experts' output for the rows, `[rows, hidden]`.
    pub(super) fn forward(&self, input: Tensor<2>, routing: Routing) -> Tensor<2> {
        lm_kernels::moe(input, &self.experts, &Arc::new(routing))
    }
}

/// Top-k routing: sends each row of `logits`, `[rows, num_experts]`, to the experts with the largest logits,
/// largest first; ties go to the lower index.
fn route(logits: &[f32], num_experts: usize, top_k: usize, softmax: RouterSoftmax) -> Routing {
    let mut routing = Routing { per_row: top_k, ..Routing::default() };
    let mut order: Vec<u32> = Vec::new();
    for logits in logits.chunks_exact(num_experts) {
        order.clear();
        order.extend(0..num_experts as u32);
        let logit = |expert: u32| logits[expert as usize];
        let by_logit = |a: &u32, b: &u32| logit(*b).total_cmp(&logit(*a)).then(a.cmp(b));
        if top_k < num_experts {
            order.select_nth_unstable_by(top_k, by_logit);
        }
        let chosen = &mut order[..top_k];
        chosen.sort_unstable_by(by_logit);
        let largest = logit(chosen[0]);
        let part = |expert: u32| (logit(expert) - largest).exp();
        let total: f32 = match softmax {
            RouterSoftmax::AllExperts => (0..num_experts as u32).map(part).sum(),
            RouterSoftmax::TopK => chosen.iter().copied().map(part).sum(),
        };
        routing.weights.extend(chosen.iter().map(|&expert| part(expert) / total));
        routing.experts.extend_from_slice(chosen);
    }
    routing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_use_the_experts_with_the_largest_logits() {
        let logits = [0.0, 2.0, 1.0, 2.0, /* the next row */ -1.0, -3.0, -2.0, -4.0];
        let routing = route(&logits, 4, 2, RouterSoftmax::TopK);
        assert_eq!(routing.experts, [1, 3, 0, 2]);
        let second = 1.0 / (1.0 + (-1.0_f32).exp());
        let expected = [0.5, 0.5, second, 1.0 - second];
        assert!(routing.weights.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-6));
    }

    #[test]
    fn softmax_over_all_experts_is_not_renormalized() {
        let logits = [3.0_f32.ln(), 0.0, 2.0_f32.ln()];
        let routing = route(&logits, 3, 2, RouterSoftmax::AllExperts);
        assert_eq!(routing.experts, [0, 2]);
        assert!((routing.weights[0] - 0.5).abs() < 1e-6 && (routing.weights[1] - 1.0 / 3.0).abs() < 1e-6);
        let all = route(&logits, 3, 3, RouterSoftmax::AllExperts);
        assert_eq!(all.experts, [0, 2, 1]);
        assert!((all.weights.iter().sum::<f32>() - 1.0).abs() < 1e-6);
    }

    #[test]
    fn nan_logits_choose_an_expert() {
        let routing = route(&[f32::NAN, 1.0, f32::NEG_INFINITY], 3, 2, RouterSoftmax::AllExperts);
        assert_eq!(routing.experts, [0, 1]);
    }
}
