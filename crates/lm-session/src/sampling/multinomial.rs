//! Draw from the categorical distribution of the logits.

use super::TokenLogits;
use super::argmax::BLOCK_SIZE;
use super::weights::{block_sum, exp};
use lm_tokenizer::TokenId;

/// Inverse-CDF sampling: returns the token at the point `uniform` of `[0, 1)` of the cumulative distribution
/// over ascending ids; `None` when every token is masked.
pub(super) fn multinomial(logits: &TokenLogits, uniform: f64) -> Option<TokenId> {
    let max = logits.max()?;
    let weight = |value: f32| exp(value - max);
    let sums: Vec<f64> = logits.values().chunks(BLOCK_SIZE).map(|block| block_sum(block, weight)).collect();
    let (block, rest) = crossing(&sums, uniform * sums.iter().sum::<f64>())?;
    let weights = logits.values().iter().map(|&value| f64::from(weight(value)));
    let weights: Vec<f64> = weights.skip(block * BLOCK_SIZE).take(BLOCK_SIZE).collect();
    let (index, _) = crossing(&weights, rest)?;
    logits.ids().get(block * BLOCK_SIZE + index).copied()
}

/// First weight where the cumulative sum exceeds `target`, or the last positive one; and the rest of `target`
/// before it. `None` if no weight is positive.
fn crossing(weights: &[f64], mut target: f64) -> Option<(usize, f64)> {
    let mut found = None;
    for (index, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        found = Some((index, target));
        if weight > target {
            break;
        }
        target -= weight;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_has_its_share() {
        const MASKED: f32 = f32::NEG_INFINITY;
        // Probabilities 1/4, 0, 1/2, 1/4, 0.
        let (half, quarter) = (7.0, 7.0 - std::f32::consts::LN_2);
        let logits = TokenLogits::new(&[quarter, MASKED, half, quarter, MASKED]).unwrap();
        for (at, expected) in [(0.0, 0), (0.24, 0), (0.26, 2), (0.74, 2), (0.76, 3), (1.0, 3)] {
            assert_eq!(multinomial(&logits, at), Some(expected), "{at}");
        }
        assert_eq!(multinomial(&TokenLogits::new(&[MASKED]).unwrap(), 0.5), None);
    }

    #[test]
    fn blocks_keep_the_shares() {
        // Even tokens are masked.
        let row: Vec<f32> = (0..1000).map(|id| if id % 2 == 0 { f32::NEG_INFINITY } else { 3.0 }).collect();
        let logits = TokenLogits::new(&row).unwrap();
        for index in 0..500 {
            let uniform = (f64::from(index) + 0.5) / 500.0;
            assert_eq!(multinomial(&logits, uniform), Some(2 * index as TokenId + 1), "{uniform}");
        }
    }
}
