//! Top-k sampling.

use super::{History, LogitsFilter, TokenLogits};
use crate::SamplerParams;

/// Keeps the tokens whose logit is at least the k-th highest, including ties.
///
/// # Source
/// `TopKLogitsWarper` of Hugging Face transformers.
#[derive(Debug)]
struct TopK(usize);

pub(super) fn filter(params: &SamplerParams) -> Option<Box<dyn LogitsFilter>> {
    let on = !params.is_greedy() && params.top_k > 0;
    on.then(|| Box::new(TopK(params.top_k)) as _)
}

impl LogitsFilter for TopK {
    fn apply(&self, logits: &mut TokenLogits, _: &History<'_>) {
        if self.0 >= logits.values().len() {
            return;
        }
        let mut values = logits.values().to_vec();
        let (_, threshold, _) = values.select_nth_unstable_by(self.0 - 1, |a, b| b.total_cmp(a));
        let threshold = *threshold;
        logits.retain(|_, value| value >= threshold);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::tests::check_filter;

    #[test]
    fn the_highest_stay() {
        const MASKED: f32 = f32::NEG_INFINITY;
        for (top_k, row, expected) in [
            (0, &[1.0, 2.0][..], &[(0, 1.0), (1, 2.0)][..]),
            (1, &[1.0, 3.0, 2.0], &[(1, 3.0)]),
            (2, &[1.0, 3.0, 2.0], &[(1, 3.0), (2, 2.0)]),
            (2, &[2.0, 3.0, 2.0], &[(0, 2.0), (1, 3.0), (2, 2.0)]),
            (9, &[1.0, 2.0], &[(0, 1.0), (1, 2.0)]),
            (1, &[MASKED, MASKED], &[(0, MASKED), (1, MASKED)]),
            (1, &[], &[]),
        ] {
            let params = SamplerParams { temperature: 1.0, top_k, ..SamplerParams::default() };
            check_filter(filter, params, row, expected);
        }
    }
}
