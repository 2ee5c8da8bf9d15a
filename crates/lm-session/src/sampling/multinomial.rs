//! Draw from the categorical distribution of the logits.

use super::TokenLogits;
use crate::TokenId;

/// Inverse-CDF sampling: returns the token at the point `uniform` of `[0, 1)` of the cumulative distribution over ascending
/// ids; `None` when every token is masked.
pub(super) fn multinomial(logits: &TokenLogits, uniform: f64) -> Option<TokenId> {
    let max = logits.max()?;
    let weights = || logits.values().iter().map(|value| f64::from(value - max).exp());
    let target = uniform * weights().sum::<f64>();
    let mut sum = 0.0;
    let mut chosen = None;
    for (&id, weight) in logits.ids().iter().zip(weights()) {
        if weight > 0.0 {
            chosen = Some(id);
            sum += weight;
        }
        if sum > target {
            break;
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_owns_its_share() {
        const MASKED: f32 = f32::NEG_INFINITY;
        // Probabilities 1/4, 0, 1/2, 1/4, 0.
        let (half, quarter) = (7.0, 7.0 - std::f32::consts::LN_2);
        let logits = TokenLogits::new(&[quarter, MASKED, half, quarter, MASKED]).unwrap();
        for (at, expected) in [(0.0, 0), (0.24, 0), (0.26, 2), (0.74, 2), (0.76, 3), (1.0, 3)] {
            assert_eq!(multinomial(&logits, at), Some(expected), "{at}");
        }
        assert_eq!(multinomial(&TokenLogits::new(&[MASKED]).unwrap(), 0.5), None);
    }
}
