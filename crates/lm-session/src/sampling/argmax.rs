//! Argmax for greedy sampling.

use super::weights::max;
use crate::constraint::TokenMask;

/// Number of tokens per mask word.
const WORD_BITS: usize = TokenMask::WORD_LEN;

/// Block size of loops over the vocabulary, chosen so that they vectorise: the vocabulary is read once per
/// token.
pub(super) const BLOCK_SIZE: usize = 64;

/// Index of the highest value, the first of equal ones; `None` when all are -infinity.
///
/// Values are neither NaN nor +infinity.
pub(crate) fn argmax(values: &[f32]) -> Option<usize> {
    let (mut highest, mut group) = (f32::NEG_INFINITY, 0);
    for (index, values) in values.chunks(BLOCK_SIZE).enumerate() {
        let value = max(values);
        if value > highest {
            (highest, group) = (value, index * BLOCK_SIZE);
        }
    }
    if highest == f32::NEG_INFINITY {
        return None;
    }
    Some(group + values[group..].iter().position(|&value| value == highest)?)
}

/// [`argmax`] among the tokens that `mask` allows.
pub(super) fn masked_argmax(values: &[f32], mask: &TokenMask) -> Option<usize> {
    let (mut highest, mut group) = (f32::NEG_INFINITY, 0);
    for (index, (values, &word)) in values.chunks(WORD_BITS).zip(mask.words()).enumerate() {
        if word == 0 {
            continue;
        }
        let value = masked_max(values, word);
        if value > highest {
            (highest, group) = (value, index);
        }
    }
    if highest == f32::NEG_INFINITY {
        return None;
    }
    let allowed = |place: &usize| mask.words()[group] >> place & 1 == 1;
    let values = &values[group * WORD_BITS..];
    Some(
        group * WORD_BITS
            + (0..WORD_BITS.min(values.len())).find(|place| allowed(place) && values[*place] == highest)?,
    )
}

/// Highest of up to 32 values whose bit in `word` is set.
fn masked_max(values: &[f32], word: u32) -> f32 {
    let allowed = |place: usize, value: f32| if word & 1 << place != 0 { value } else { f32::NEG_INFINITY };
    let values = values.iter().enumerate().map(|(place, &value)| allowed(place, value));
    values.fold(f32::NEG_INFINITY, |a, b| if b > a { b } else { a })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_maximum_wins() {
        const MASKED: f32 = f32::NEG_INFINITY;
        for (values, expected) in [
            (&[1.0, 3.0, 3.0][..], Some(1)),
            (&[MASKED, -5.0], Some(1)),
            (&[f32::MIN], Some(0)),
            (&[MASKED], None),
            (&[], None),
        ] {
            assert_eq!(argmax(values), expected, "{values:?}");
        }
        let mut many = vec![-1.0; 3 * BLOCK_SIZE];
        (many[70], many[90], many[150]) = (2.0, 2.0, 2.0);
        assert_eq!(argmax(&many), Some(70));
    }
}
