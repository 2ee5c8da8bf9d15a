//! Log probabilities of output tokens.

use crate::{TokenId, TokenMask};

/// Log probability of an output token, and of the most probable tokens in its place.
///
/// They are those of the model's distribution over the tokens that the constraint allows, before penalties, temperature and
/// truncation. A token that the constraint forces has the log probability 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenLogprobs {
    /// Natural logarithm of the token's probability; at most 0.
    pub logprob: f32,
    /// The most probable tokens, in descending order of probability, ties in order of id. The output token is one of them only
    /// if it is that probable.
    pub top: Vec<(TokenId, f32)>,
}

impl TokenLogprobs {
    /// Creates the log probabilities of a token without alternatives.
    pub(crate) fn forced(id: TokenId, top: usize) -> Self {
        Self { logprob: 0.0, top: if top > 0 { vec![(id, 0.0)] } else { Vec::new() } }
    }
}

/// Softmax normalizer of one row of logits under a constraint's mask, and the most probable tokens.
#[derive(Debug)]
pub(crate) struct LogSoftmax {
    /// Logarithm of the sum of the exponentials.
    log_sum: f64,
    top: Vec<(TokenId, f32)>,
}

impl LogSoftmax {
    /// Normalizes a row of logits without NaN; `top` is the number of most probable tokens to select.
    pub fn new(row: &[f32], mask: Option<&TokenMask>, top: usize) -> Self {
        let mut candidates: Vec<(TokenId, f32)> = match mask {
            Some(mask) => {
                let allowed = mask.ids().take_while(|&id| (id as usize) < row.len());
                allowed.map(|id| (id, row[id as usize])).collect()
            }
            None => (0..).zip(row.iter().copied()).collect(),
        };
        candidates.retain(|(_, logit)| *logit > f32::NEG_INFINITY);
        let max = candidates.iter().map(|(_, logit)| *logit).fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = candidates.iter().map(|(_, logit)| f64::from(logit - max).exp()).sum();
        let log_sum = f64::from(max) + sum.ln();
        let by_rank = |a: &(TokenId, f32), b: &(TokenId, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if top < candidates.len() {
            candidates.select_nth_unstable_by(top, by_rank);
            candidates.truncate(top);
        }
        candidates.sort_unstable_by(by_rank);
        for (_, logit) in &mut candidates {
            *logit = normalized(*logit, log_sum);
        }
        Self { log_sum, top: candidates }
    }

    /// Returns the log probabilities of the step whose output token is `id`.
    pub fn of(self, row: &[f32], id: TokenId) -> TokenLogprobs {
        let logit = row.get(id as usize).copied().unwrap_or(f32::NEG_INFINITY);
        TokenLogprobs { logprob: normalized(logit, self.log_sum), top: self.top }
    }
}

fn normalized(logit: f32, log_sum: f64) -> f32 {
    (f64::from(logit) - log_sum).min(0.0) as f32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_mask_restricts_the_distribution_and_ties_are_in_order_of_id() {
        let row = [2f32.ln(), 0.0, 0.0, 9.0, f32::NEG_INFINITY];
        let mut mask = TokenMask::new(row.len());
        [0, 1, 2, 4].into_iter().for_each(|id| mask.allow(id));
        let scores = LogSoftmax::new(&row, Some(&mask), 2).of(&row, 2);
        assert!((scores.logprob - 0.25f32.ln()).abs() < 1e-6, "{scores:?}");
        assert_eq!(scores.top.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [0, 1]);
        assert!((scores.top[0].1 - 0.5f32.ln()).abs() < 1e-6, "{scores:?}");
        assert_eq!(LogSoftmax::new(&row, Some(&mask), 0).of(&row, 4).logprob, f32::NEG_INFINITY);
        assert_eq!(LogSoftmax::new(&row, Some(&mask), 20).of(&row, 0).top.len(), 3);
    }

    proptest! {
        #[test]
        fn probabilities_sum_to_one(row in prop::collection::vec(-90f32..90.0, 1..40)) {
            let all = LogSoftmax::new(&row, None, row.len()).of(&row, 0);
            let sum: f64 = all.top.iter().map(|(_, logprob)| f64::from(*logprob).exp()).sum();
            prop_assert!((sum - 1.0).abs() < 1e-4, "{sum}");
            prop_assert!(all.top.is_sorted_by(|a, b| a.1 >= b.1));
            prop_assert!(all.top.contains(&(0, all.logprob)));
        }
    }
}
