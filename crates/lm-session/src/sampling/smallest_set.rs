//! Smallest set of tokens with a given share of the probability, without a sort of the vocabulary.

use super::TokenLogits;
use super::argmax::BLOCK_SIZE;
use super::weights::exp;

/// Shifts of the digits of a cost's bits, from the highest digit down. The sign bit is always 0.
const SHIFTS: [u32; 3] = [21, 10, 0];
/// Number of values of a digit.
const RADIX: usize = 1 << 11;

/// Keeps the smallest set of tokens of lowest cost (the lower id first among equal ones) whose probabilities
/// sum to at least `share`; at least one token.
///
/// `cost` maps an unmasked logit to a number of at least 0. A radix selection over the bits of the costs
/// finds the highest cost kept: non-negative floats have the order of their bits. The first digit takes one
/// pass over all tokens, each further one only those that share the digits before.
pub(super) fn keep_smallest_set(logits: &mut TokenLogits, share: f64, cost: impl Fn(f32) -> f32) {
    let Some(max) = logits.max() else { return };
    let key = |value: f32| cost(value).to_bits();
    let (sums, total) = first_digit(logits.values(), max, key);
    let (mut digit, mut missing) = crossing(&sums, share * total);
    let in_bucket = |&&value: &&f32| value > f32::NEG_INFINITY && key(value) >> SHIFTS[0] == digit as u32;
    let bucket = logits.values().iter().filter(in_bucket);
    let mut bucket: Vec<(u32, f32)> = bucket.map(|&value| (key(value), exp(value - max))).collect();
    let mut sums = vec![0.0; RADIX];
    for shift in &SHIFTS[1..] {
        let digit_of = |key: u32| (key >> shift) as usize % RADIX;
        sums.fill(0.0);
        bucket.iter().for_each(|&(key, weight)| sums[digit_of(key)] += f64::from(weight));
        (digit, missing) = crossing(&sums, missing);
        bucket.retain(|&(key, _)| digit_of(key) == digit);
    }
    let Some(&(highest, _)) = bucket.first() else { return };
    let mut ties = tied(&bucket, missing);
    logits.retain(|_, value| {
        let key = key(value);
        let tie = key == highest && ties > 0 && value > f32::NEG_INFINITY;
        ties -= usize::from(tie);
        tie || key < highest
    });
}

/// Sums of the weights by the first digit of their keys, and the sum of all.
fn first_digit(values: &[f32], max: f32, key: impl Fn(f32) -> u32) -> (Vec<f64>, f64) {
    let mut sums = vec![0.0; RADIX];
    let (mut digits, mut weights) = ([0; BLOCK_SIZE], [0.0; BLOCK_SIZE]);
    for block in values.chunks(BLOCK_SIZE) {
        // Apart from the sums, which do not vectorise.
        for ((digit, weight), &value) in digits.iter_mut().zip(&mut weights).zip(block) {
            (*digit, *weight) = (key(value) >> SHIFTS[0], exp(value - max));
        }
        for (&digit, &weight) in digits.iter().zip(&weights).take(block.len()) {
            sums[digit as usize % RADIX] += f64::from(weight);
        }
    }
    let total = sums.iter().sum();
    (sums, total)
}

/// First digit whose cumulative sum reaches `mass`, or the last nonempty one; and the mass missing before it.
fn crossing(sums: &[f64], mass: f64) -> (usize, f64) {
    let (mut last, mut missing, mut before) = (0, mass, mass);
    for (digit, &sum) in sums.iter().enumerate().filter(|(_, sum)| **sum > 0.0) {
        (last, before) = (digit, missing);
        missing -= sum;
        if missing <= 0.0 {
            break;
        }
    }
    (last, before)
}

/// Number of first tokens of equal cost that reach `mass`, at least one.
fn tied(bucket: &[(u32, f32)], mut mass: f64) -> usize {
    let reached = bucket.iter().position(|(_, weight)| {
        mass -= f64::from(*weight);
        mass <= 0.0
    });
    reached.map_or(bucket.len(), |last| last + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use lm_tokenizer::TokenId;

    /// The set by a sort of all tokens.
    fn sorted(row: &[f32], share: f64, cost: impl Fn(f32) -> f32) -> Vec<TokenId> {
        let max = row.iter().copied().fold(f32::MIN, f32::max);
        let weight = |id: TokenId| f64::from(exp(row[id as usize] - max));
        let mut ids: Vec<TokenId> =
            (0..row.len() as TokenId).filter(|&id| row[id as usize] > f32::NEG_INFINITY).collect();
        ids.sort_by(|&a, &b| cost(row[a as usize]).total_cmp(&cost(row[b as usize])));
        let mass = share * ids.iter().map(|&id| weight(id)).sum::<f64>();
        let mut sum = 0.0;
        let last = ids.iter().position(|&id| {
            sum += weight(id);
            sum >= mass * (1.0 - 1e-12)
        });
        ids.truncate(last.map_or(ids.len(), |last| last + 1));
        ids.sort_unstable();
        ids
    }

    fn selected(row: &[f32], share: f64, cost: impl Fn(f32) -> f32) -> Vec<TokenId> {
        let mut logits = TokenLogits::new(row).unwrap();
        keep_smallest_set(&mut logits, share, cost);
        logits.ids().to_vec()
    }

    proptest! {
        #[test]
        fn smallest_set_equals_a_sort(
            row in prop::collection::vec(prop_oneof![
                6 => -30f32..30.0, 2 => -1e-3f32..1e-3, 2 => Just(1.0f32), 1 => Just(f32::NEG_INFINITY), 1 => -2000f32..2000.0,
            ], 1..900),
            share in 0f64..0.999, centre in 0f32..5.0,
        ) {
            let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            if max > f32::NEG_INFINITY {
                let below_max = |value: f32| max - value;
                prop_assert_eq!(selected(&row, share, below_max), sorted(&row, share, below_max));
                let off_centre = |value: f32| (max - value - centre).abs();
                prop_assert_eq!(selected(&row, share, off_centre), sorted(&row, share, off_centre));
            }
        }
    }

    #[test]
    fn equal_tokens_are_ordered_by_id() {
        assert_eq!(selected(&[1.0; 10], 0.35, |value| 1.0 - value), [0, 1, 2, 3]);
        assert_eq!(selected(&[1.0; 10], 0.0, |value| 1.0 - value), [0]);
    }
}
