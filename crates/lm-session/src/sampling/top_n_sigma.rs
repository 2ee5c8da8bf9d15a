//! Top-nσ sampling.

use super::weights::sum;
use super::{FilterContext, History, LogitsFilter, TokenLogits};

/// Keeps the tokens whose logit is at most n standard deviations below the highest one. The deviation is that
/// of the tokens that the earlier filters left: of the whole vocabulary, as in the paper, if top-k, top-p and
/// the like are off. The temperature has no effect.
///
/// # Source
/// Tang et al., arXiv 2411.07641; `top_n_sigma` of llama.cpp.
#[derive(Debug)]
struct TopNSigma(f64);

pub(super) fn filter(context: &FilterContext<'_>) -> Option<Box<dyn LogitsFilter>> {
    let params = context.params;
    (params.top_n_sigma > 0.0).then(|| Box::new(TopNSigma(params.top_n_sigma.into())) as _)
}

impl LogitsFilter for TopNSigma {
    fn apply(&mut self, logits: &mut TokenLogits, _: &History<'_>) {
        let Some(max) = logits.max() else { return };
        // Differences from the maximum, so that large logits lose no digits; masked tokens do not count.
        let unmasked = |value: f32, term: f32| if value > f32::NEG_INFINITY { term } else { 0.0 };
        let count = sum(logits.values(), |value| unmasked(value, 1.0));
        let mean = (sum(logits.values(), |value| unmasked(value, value - max)) / count) as f32;
        let square = |value: f32| unmasked(value, (value - max - mean) * (value - max - mean));
        let lowest = (-self.0 * (sum(logits.values(), square) / count).sqrt()) as f32;
        if lowest.is_nan() {
            return; // Logits so far apart that the deviation overflows.
        }
        logits.retain(|_, value| value - max >= lowest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::SamplerParams;
    use crate::sampling::tests::check_filter;

    #[test]
    fn threshold_is_in_standard_deviations() {
        const MASKED: f32 = f32::NEG_INFINITY;
        let row = &[0.0, 2.0, 4.0, 6.0][..]; // Standard deviation √5 = 2.236.
        for (top_n_sigma, row, expected) in [
            (0.0, row, &[0, 1, 2, 3][..]),
            (0.5, row, &[3]),
            (1.0, row, &[2, 3]),
            (2.0, row, &[1, 2, 3]),
            (1.0, &[0.0, MASKED, 2.0, 4.0, 6.0], &[3, 4]),
            (1.0, &[5.0, 5.0], &[0, 1]),
            (1.0, &[f32::MIN, f32::MAX], &[0, 1]),
            (1.0, &[MASKED], &[0]),
        ] {
            let params = SamplerParams { temperature: 1.0, top_n_sigma, ..SamplerParams::default() };
            let expected: Vec<_> = expected.iter().map(|&id| (id, row[id as usize])).collect();
            check_filter(filter, params, row, &expected);
        }
    }
}
