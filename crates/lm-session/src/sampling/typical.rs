//! Locally typical sampling.

use super::smallest_set::keep_smallest_set;
use super::weights::{exp, sum};
use super::{FilterContext, History, LogitsFilter, TokenLogits};

/// Keeps the smallest set of tokens whose surprisal is closest to the entropy of the distribution (the lower
/// id first among equally close ones) and whose probabilities sum to at least p; at least one token.
///
/// # Source
/// Meister et al., arXiv 2202.00666; `TypicalLogitsWarper` of Hugging Face transformers.
#[derive(Debug)]
struct Typical(f64);

pub(super) fn filter(context: &FilterContext<'_>) -> Option<Box<dyn LogitsFilter>> {
    let params = context.params;
    (params.typical_p < 1.0).then(|| Box::new(Typical(params.typical_p.into())) as _)
}

impl LogitsFilter for Typical {
    fn apply(&mut self, logits: &mut TokenLogits, _: &History<'_>) {
        let Some(max) = logits.max() else { return };
        // With weights w = e^(logit - max) and their sum z, a token's surprisal is ln z - ln w, and the
        // entropy is ln z - Σ w ln w / z: ln z cancels out.
        let weighted = |value: f32| {
            let (log_weight, weight) = (value - max, exp(value - max));
            if weight > 0.0 { weight * log_weight } else { 0.0 }
        };
        let total = sum(logits.values(), |value| exp(value - max));
        let mean = (sum(logits.values(), weighted) / total) as f32;
        keep_smallest_set(logits, self.0, |value| (value - max - mean).abs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::SamplerParams;
    use crate::sampling::tests::check_filter;

    #[test]
    fn keeps_tokens_near_the_entropy() {
        const MASKED: f32 = f32::NEG_INFINITY;
        // Probabilities 0.6, 0.25, 0.1, 0.05: entropy 1.033; surprisals 0.511, 1.386, 2.303, 2.996.
        let row: Vec<f32> = [0.6f32, 0.25, 0.1, 0.05].iter().map(|p| p.ln()).collect();
        for (typical_p, row, expected) in [
            (1.0, &row[..], &[0, 1, 2, 3][..]),
            (0.2, &row, &[1]),
            (0.3, &row, &[0, 1]),
            (0.9, &row, &[0, 1, 2]),
            (0.5, &[MASKED, 1.0], &[1]),
            (0.5, &[MASKED], &[0]),
        ] {
            let params = SamplerParams { temperature: 1.0, typical_p, ..SamplerParams::default() };
            let expected: Vec<_> = expected.iter().map(|&id| (id, row[id as usize])).collect();
            check_filter(filter, params, row, &expected);
        }
    }
}
