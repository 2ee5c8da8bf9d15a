//! Top-k sampling.

use super::argmax::BLOCK_SIZE;
use super::weights::max;
use super::{FilterContext, History, LogitsFilter, TokenLogits};

/// Keeps the tokens whose logit is at least the k-th highest, including ties.
///
/// # Source
/// `TopKLogitsWarper` of Hugging Face transformers.
#[derive(Debug)]
struct TopK(usize);

pub(super) fn filter(context: &FilterContext<'_>) -> Option<Box<dyn LogitsFilter>> {
    let params = context.params;
    (params.top_k > 0).then(|| Box::new(TopK(params.top_k)) as _)
}

impl LogitsFilter for TopK {
    fn apply(&mut self, logits: &mut TokenLogits, _: &History<'_>) {
        if self.0 >= logits.values().len() {
            return;
        }
        let threshold = kth_highest(logits.values(), self.0);
        logits.retain(|_, value| value >= threshold);
    }
}

/// k-th highest of at least k values; k is at least 1.
fn kth_highest(values: &[f32], k: usize) -> f32 {
    let kth = |values: &mut [f32]| *values.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a)).1;
    // k blocks have a value of at least the k-th highest maximum of a block: all lower values can be skipped.
    let mut maxima: Vec<f32> = values.chunks(BLOCK_SIZE).map(max).collect();
    let bound = if k <= maxima.len() { kth(&mut maxima) } else { f32::NEG_INFINITY };
    let mut candidates: Vec<f32> = values.iter().copied().filter(|value| *value >= bound).collect();
    kth(&mut candidates)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sampling::SamplerParams;
    use crate::sampling::tests::check_filter;

    #[test]
    fn keeps_the_highest() {
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

    proptest! {
        #[test]
        fn kth_highest_equals_a_sort(
            row in prop::collection::vec(prop_oneof![3 => -9f32..9.0, 1 => Just(1.0f32), 1 => Just(f32::NEG_INFINITY)], 1..900),
            share in 0f64..1.0,
        ) {
            let k = 1 + (share * (row.len() - 1) as f64) as usize;
            let mut sorted = row.clone();
            sorted.sort_by(|a, b| b.total_cmp(a));
            prop_assert_eq!(kth_highest(&row, k), sorted[k - 1]);
        }
    }
}
