//! Log probabilities of output tokens.

use super::weights;
use crate::constraint::TokenMask;
use lm_tokenizer::TokenId;

/// Log probability of an output token, and of the most probable tokens in its place.
///
/// Taken from the model's distribution over the tokens that the constraint allows, before penalties,
/// temperature and truncation. A token that the constraint forces has the log probability 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenLogprobs {
    /// Natural logarithm of the token's probability; at most 0.
    pub logprob: f32,
    /// The most probable tokens, in descending order of probability, ties in order of id. The output token is
    /// included only if it is probable enough.
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
        let allowed = |mask: &TokenMask| -> Vec<TokenId> {
            mask.ids().take_while(|&id| (id as usize) < row.len()).collect()
        };
        let ids = mask.map(allowed);
        let masked: Option<Vec<f32>> =
            ids.as_ref().map(|ids| ids.iter().map(|&id| row[id as usize]).collect());
        let values = masked.as_deref().unwrap_or(row);
        let max = weights::max(values);
        let log_sum = f64::from(max) + weights::sum(values, |value| weights::exp(value - max)).ln();
        let id = |index: usize| ids.as_ref().map_or(index as TokenId, |ids| ids[index]);
        Self {
            log_sum,
            top: highest(values, top).map(|index| (id(index), normalized(values[index], log_sum))).collect(),
        }
    }

    /// Returns the log probabilities of the step whose output token is `id`.
    pub fn of(self, row: &[f32], id: TokenId) -> TokenLogprobs {
        let logit = row.get(id as usize).copied().unwrap_or(f32::NEG_INFINITY);
        TokenLogprobs { logprob: normalized(logit, self.log_sum), top: self.top }
    }
}

/// Indices of the `count` highest values above -infinity, in descending order, equal ones in ascending order
/// of index.
fn highest(values: &[f32], count: usize) -> impl Iterator<Item = usize> {
    let mut indices: Vec<usize> = match count {
        0 => Vec::new(),
        _ => (0..values.len()).filter(|&index| values[index] > f32::NEG_INFINITY).collect(),
    };
    let by_rank = |&a: &usize, &b: &usize| values[b].total_cmp(&values[a]).then(a.cmp(&b));
    if count < indices.len() {
        indices.select_nth_unstable_by(count, by_rank);
        indices.truncate(count);
    }
    indices.sort_unstable_by(by_rank);
    indices.into_iter()
}

fn normalized(logit: f32, log_sum: f64) -> f32 {
    (f64::from(logit) - log_sum).min(0.0) as f32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn mask_restricts_the_distribution_and_ties_order_by_id() {
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
