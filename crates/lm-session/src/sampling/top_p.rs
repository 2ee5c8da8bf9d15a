//! Top-p (nucleus) sampling.

use super::{History, LogitsFilter, TokenLogits};
use crate::SamplerParams;

/// Keeps the nucleus: the smallest set of most likely tokens (the lower id first among equal ones) whose probabilities sum to
/// at least p; at least one token.
///
/// # Source
/// Holtzman et al., arXiv 1904.09751; `TopPLogitsWarper` of Hugging Face transformers.
#[derive(Debug)]
struct TopP(f64);

pub(super) fn filter(params: &SamplerParams) -> Option<Box<dyn LogitsFilter>> {
    let on = !params.is_greedy() && params.top_p < 1.0;
    on.then(|| Box::new(TopP(params.top_p.into())) as _)
}

impl LogitsFilter for TopP {
    fn apply(&self, logits: &mut TokenLogits, _: &History<'_>) {
        let Some(max) = logits.max() else { return };
        let weights: Vec<f64> = logits.values().iter().map(|value| f64::from(value - max).exp()).collect();
        let mut kept = vec![false; weights.len()];
        for index in nucleus(&weights, self.0 * weights.iter().sum::<f64>()) {
            kept[index] = true;
        }
        let mut kept = kept.into_iter();
        logits.retain(|_, _| kept.next().is_some_and(|keep| keep));
    }
}

/// Indices of the smallest set of highest weights that sum to `mass`, at least one.
fn nucleus(weights: &[f64], mass: f64) -> Vec<usize> {
    let by_weight = |a: &usize, b: &usize| weights[*b].total_cmp(&weights[*a]).then(a.cmp(b));
    let mut indices: Vec<usize> = (0..weights.len()).collect();
    // The nucleus is usually small: sort the head first, and more only when its mass does not suffice.
    let mut head = 256;
    loop {
        head = head.min(indices.len());
        if head < indices.len() {
            indices.select_nth_unstable_by(head, by_weight);
        }
        indices[..head].sort_unstable_by(by_weight);
        let mut sum = 0.0;
        let reached = indices[..head].iter().position(|&index| {
            sum += weights[index];
            sum >= mass
        });
        match reached {
            Some(last) => indices.truncate(last + 1),
            None if head < indices.len() => {
                head *= 16;
                continue;
            }
            None => {}
        }
        return indices;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sampling::tests::check_filter;

    #[test]
    fn the_smallest_nucleus_stays() {
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

    proptest! {
        #[test]
        fn the_head_first_sort_is_the_whole_sort(
            weights in prop::collection::vec(0.01f64..1.0, 1..900), share in 0f64..1.0
        ) {
            let mass = share * weights.iter().sum::<f64>();
            let mut sorted: Vec<usize> = (0..weights.len()).collect();
            sorted.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]).then(a.cmp(b)));
            let mut sum = 0.0;
            let last = sorted.iter().position(|&index| { sum += weights[index]; sum >= mass });
            prop_assert_eq!(nucleus(&weights, mass), &sorted[..=last.unwrap_or(weights.len() - 1)]);
        }
    }
}
