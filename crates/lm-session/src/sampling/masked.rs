//! Effect of a constraint's masks on the model's distribution.

use serde::{Deserialize, Serialize};

use super::{argmax, weights};
use crate::constraint::TokenMask;

/// Effect of a constraint's masks on the model's distribution, at the sampled tokens of a generation.
///
/// Probabilities are those of the model before penalties, temperature and truncation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Masked {
    /// Number of sampled tokens. Forced ones have no distribution.
    pub sampled: usize,
    /// Probability of the tokens that the mask excluded, at the first sampled token. A high one means that
    /// the constraint asks for another form than the model's own.
    pub first: f32,
    /// Number of tokens at which the mask excluded the most probable token.
    pub overruled: usize,
    /// Sum of the excluded probability at the overruled tokens.
    pub removed: f32,
    /// Number of complete texts that ended because the model preferred an excluded token to a further part.
    pub ended: usize,
}

impl Masked {
    /// Counts a row of logits without NaN, from which a token is sampled under `mask`.
    pub(crate) fn record(&mut self, row: &[f32], mask: &TokenMask) {
        self.sampled += 1;
        let overruled = argmax(row).is_some_and(|best| !mask.allows(best as u32));
        if !overruled && self.sampled > 1 {
            return;
        }
        let removed = excluded(row, mask);
        if self.sampled == 1 {
            self.first = removed;
        }
        if overruled {
            self.overruled += 1;
            self.removed += removed;
        }
    }
}

/// Probability of the tokens that `mask` excludes.
fn excluded(row: &[f32], mask: &TokenMask) -> f32 {
    let max = weights::max(row);
    let all = weights::sum(row, |value| weights::exp(value - max));
    let allowed = mask.ids().filter_map(|id| row.get(id as usize));
    let allowed: f64 = allowed.map(|value| f64::from(weights::exp(value - max))).sum();
    (1.0 - allowed / all).clamp(0.0, 1.0) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(width: usize, ids: &[u32]) -> TokenMask {
        let mut mask = TokenMask::new(width);
        ids.iter().for_each(|&id| mask.allow(id));
        mask
    }

    #[test]
    fn first_token_and_overruled_tokens_count() {
        let row = [3f32.ln(), 0.0, 0.0, 3f32.ln()];
        let mut masked = Masked::default();
        masked.record(&row, &mask(4, &[0, 1]));
        assert_eq!((masked.sampled, masked.overruled, masked.removed), (1, 0, 0.0));
        assert!((masked.first - 0.5).abs() < 1e-6, "{masked:?}");
        masked.record(&row, &mask(4, &[1, 2]));
        masked.record(&row, &mask(4, &[0]));
        assert_eq!((masked.sampled, masked.overruled), (3, 1));
        assert!((masked.first - 0.5).abs() < 1e-6 && (masked.removed - 0.75).abs() < 1e-6, "{masked:?}");
    }
}
