//! Logits of one step, the input of the filters.

use super::argmax::BLOCK_SIZE;
use super::weights;
use crate::constraint::TokenMask;
use crate::error::{Error, Result};
use lm_tokenizer::TokenId;

/// Candidate tokens in ascending order of id, each with its logit.
///
/// A masked token is absent or has the logit -infinity. Both are final: no method gives a masked token a
/// logit again. Logits are never NaN nor +infinity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenLogits {
    ids: Vec<TokenId>,
    values: Vec<f32>,
}

impl TokenLogits {
    /// Creates the logits of a whole vocabulary: entry `i` belongs to token `i`.
    ///
    /// # Errors
    /// [`Error::InvalidLogit`] for NaN or +infinity; -infinity is a mask.
    pub fn new(row: &[f32]) -> Result<Self> {
        let mut logits = Self::default();
        logits.load(row)?;
        Ok(logits)
    }

    /// [`TokenLogits::new`] in place: reuses the buffers.
    pub(crate) fn load(&mut self, row: &[f32]) -> Result<()> {
        check(row)?;
        // If there are as many ids as tokens, they are all ids: each occurs once.
        if self.ids.len() != row.len() {
            self.ids.clear();
            self.ids.extend(0..row.len() as TokenId);
        }
        self.values.clear();
        self.values.extend_from_slice(row);
        Ok(())
    }

    /// [`TokenLogits::load`] of the tokens that `mask` allows.
    pub(crate) fn load_allowed(&mut self, row: &[f32], mask: &TokenMask) -> Result<()> {
        check(row)?;
        self.ids.clear();
        self.values.clear();
        for (index, (values, &word)) in row.chunks(TokenMask::WORD_LEN).zip(mask.words()).enumerate() {
            if word != 0 {
                self.push_allowed((index * TokenMask::WORD_LEN) as TokenId, values, word);
            }
        }
        Ok(())
    }

    /// Appends the tokens whose bit in `word` is set; `values` are the logits of the tokens from `first` on.
    fn push_allowed(&mut self, first: TokenId, values: &[f32], word: u32) {
        let (mut ids, mut logits, mut kept) = ([0; TokenMask::WORD_LEN], [0.0; TokenMask::WORD_LEN], 0);
        // Without a branch on the bit, which is hard to predict inside a string.
        for (place, &value) in values.iter().enumerate() {
            (ids[kept], logits[kept]) = (first + place as TokenId, value);
            kept += (word >> place & 1) as usize;
        }
        self.ids.extend_from_slice(&ids[..kept]);
        self.values.extend_from_slice(&logits[..kept]);
    }

    /// Ids in ascending order.
    pub fn ids(&self) -> &[TokenId] {
        &self.ids
    }

    /// Logits, in the order of [`TokenLogits::ids`].
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The highest logit; `None` when every token is masked.
    pub fn max(&self) -> Option<f32> {
        Some(weights::max(&self.values)).filter(|max| *max > f32::NEG_INFINITY)
    }

    /// Replaces each logit of an unmasked token.
    pub fn update(&mut self, mut change: impl FnMut(f32) -> f32) {
        for value in &mut self.values {
            set(value, &mut change);
        }
    }

    /// Replaces the logit of token `id`, unless it is masked.
    pub fn update_token(&mut self, id: TokenId, mut change: impl FnMut(f32) -> f32) {
        // Before any token was removed, its index is its id.
        let index = Some(id as usize).filter(|&index| self.ids.get(index) == Some(&id));
        if let Some(index) = index.or_else(|| self.ids.binary_search(&id).ok()) {
            set(&mut self.values[index], &mut change);
        }
    }

    /// Masks every token whose `keep` is false.
    pub fn retain(&mut self, mut keep: impl FnMut(TokenId, f32) -> bool) {
        let mut kept = 0;
        // Without a branch on the outcome, which is random over a vocabulary.
        for index in 0..self.ids.len() {
            let (id, value) = (self.ids[index], self.values[index]);
            (self.ids[kept], self.values[kept]) = (id, value);
            kept += usize::from(keep(id, value));
        }
        self.ids.truncate(kept);
        self.values.truncate(kept);
    }
}

/// Returns an error for the first value that is neither finite nor -infinity.
pub(crate) fn check(row: &[f32]) -> Result<()> {
    let bad = |value: &f32| value.is_nan() || *value == f32::INFINITY;
    // No early exit from the inner loop, so that it vectorises.
    let group =
        row.chunks(BLOCK_SIZE).position(|values| values.iter().fold(false, |any, value| any | bad(value)));
    let first = group.map_or(row.len(), |group| group * BLOCK_SIZE);
    match row[first..].iter().position(bad) {
        Some(token) => {
            Err(Error::InvalidLogit { token: (first + token) as TokenId, value: row[first + token] })
        }
        None => Ok(()),
    }
}

fn set(value: &mut f32, change: &mut impl FnMut(f32) -> f32) {
    if *value > f32::NEG_INFINITY {
        *value = change(*value).min(f32::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASKED: f32 = f32::NEG_INFINITY;

    #[test]
    fn nan_and_infinity_are_errors() {
        for bad in [f32::NAN, f32::INFINITY] {
            let error = TokenLogits::new(&[0.0, MASKED, bad]).unwrap_err();
            assert!(matches!(error, Error::InvalidLogit { token: 2, .. }), "{error}");
            let mut many = vec![0.0; 200];
            many[133] = bad;
            let error = TokenLogits::new(&many).unwrap_err();
            assert!(matches!(error, Error::InvalidLogit { token: 133, .. }), "{error}");
        }
        assert_eq!(TokenLogits::new(&[MASKED, MASKED]).unwrap().max(), None);
    }

    #[test]
    fn mask_selects_tokens_of_the_row() {
        for (width, mask_width) in [(0, 0), (31, 70), (70, 31), (100, 100), (96, 96)] {
            let row: Vec<f32> = (0..width).map(|id| id as f32 / 8.0).collect();
            for (step, offset) in [(1, 0), (1, 33), (2, 1), (37, 5)] {
                let mut mask = TokenMask::new(mask_width);
                (offset..mask_width as TokenId).step_by(step).for_each(|id| mask.allow(id));
                let mut logits = TokenLogits::new(&[5.0; 3]).unwrap();
                logits.load_allowed(&row, &mask).unwrap();
                let ids: Vec<TokenId> = mask.ids().filter(|&id| (id as usize) < row.len()).collect();
                let values: Vec<f32> = ids.iter().map(|&id| row[id as usize]).collect();
                assert_eq!(
                    (logits.ids(), logits.values()),
                    (&ids[..], &values[..]),
                    "{width} {step} {offset}"
                );
            }
        }
    }

    #[test]
    fn masked_tokens_stay_masked() {
        let mut logits = TokenLogits::new(&[1.0, MASKED, 3.0]).unwrap();
        logits.retain(|id, _| id != 0);
        logits.update(|_| 7.0);
        logits.update_token(0, |_| 7.0);
        logits.update_token(1, |_| 7.0);
        assert_eq!((logits.ids(), logits.values()), (&[1, 2][..], &[MASKED, 7.0][..]));
    }

    #[test]
    fn logits_stay_below_infinity() {
        let mut logits = TokenLogits::new(&[f32::MAX]).unwrap();
        logits.update(|value| value * 2.0);
        assert_eq!(logits.max(), Some(f32::MAX));
    }
}
