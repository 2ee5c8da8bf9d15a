//! Top-p (nucleus) sampling.

use super::smallest_set::keep_smallest_set;
use super::{FilterContext, History, LogitsFilter, TokenLogits};

/// Keeps the nucleus: the smallest set of most likely tokens (the lower id first among equal ones) whose
/// probabilities sum to at least p; at least one token.
///
/// # Source
/// Holtzman et al., arXiv 1904.09751; `TopPLogitsWarper` of Hugging Face transformers.
#[derive(Debug)]
struct TopP(f64);

pub(super) fn filter(context: &FilterContext<'_>) -> Option<Box<dyn LogitsFilter>> {
    let params = context.params;
    (params.top_p < 1.0).then(|| Box::new(TopP(params.top_p.into())) as _)
}

impl LogitsFilter for TopP {
    fn apply(&mut self, logits: &mut TokenLogits, _: &History<'_>) {
        let Some(max) = logits.max() else { return };
        keep_smallest_set(logits, self.0, |value| max - value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::SamplerParams;
    use crate::sampling::tests::check_filter;

    #[test]
    fn keeps_the_smallest_nucleus() {
        const MASKED: f32 = f32::NEG_INFINITY;
        // Probabilities 1/2, 1/4, 1/4.
        let (half, quarter) = (0.0, -std::f32::consts::LN_2);
        let row = &[quarter, half, quarter][..];
        for (top_p, row, expected) in [
            (1.0, row, &[(0, quarter), (1, half), (2, quarter)][..]),
            (0.0, row, &[(1, half)]),
            (0.49, row, &[(1, half)]),
            (0.51, row, &[(0, quarter), (1, half)]),
            (0.76, row, &[(0, quarter), (1, half), (2, quarter)]),
            (0.9, &[MASKED, 1.0], &[(1, 1.0)]),
            (0.9, &[MASKED], &[(0, MASKED)]),
        ] {
            let params = SamplerParams { temperature: 1.0, top_p, ..SamplerParams::default() };
            check_filter(filter, params, row, expected);
        }
    }
}
