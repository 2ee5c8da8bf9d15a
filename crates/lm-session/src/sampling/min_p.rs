//! Min-p sampling.

use super::{FilterContext, History, LogitsFilter, TokenLogits};

/// Keeps the tokens whose probability is at least `min_p` times the highest one.
///
/// # Source
/// Nguyen et al., arXiv 2407.01082; `MinPLogitsWarper` of Hugging Face transformers.
#[derive(Debug)]
struct MinP {
    /// Logarithm of `min_p`: the lowest difference from the highest logit that is kept.
    lowest: f32,
}

pub(super) fn filter(context: &FilterContext<'_>) -> Option<Box<dyn LogitsFilter>> {
    let params = context.params;
    (params.min_p > 0.0).then(|| Box::new(MinP { lowest: params.min_p.ln() }) as _)
}

impl LogitsFilter for MinP {
    fn apply(&mut self, logits: &mut TokenLogits, _: &History<'_>) {
        if let Some(max) = logits.max() {
            logits.retain(|_, value| value - max >= self.lowest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::SamplerParams;
    use crate::sampling::tests::check_filter;

    #[test]
    fn tokens_below_the_fraction_are_dropped() {
        const MASKED: f32 = f32::NEG_INFINITY;
        let row = &[0.0, -1.0, -2.0][..]; // 1, 0.37, 0.14 of the highest
        for (min_p, row, expected) in [
            (0.0, row, &[(0, 0.0), (1, -1.0), (2, -2.0)][..]),
            (0.3, row, &[(0, 0.0), (1, -1.0)]),
            (1.0, row, &[(0, 0.0)]),
            (0.1, &[MASKED, 5.0], &[(1, 5.0)]),
            (0.1, &[MASKED], &[(0, MASKED)]),
        ] {
            let params = SamplerParams { temperature: 1.0, min_p, ..SamplerParams::default() };
            check_filter(filter, params, row, expected);
        }
    }
}
