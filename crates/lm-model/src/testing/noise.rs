use super::random::{mix, row_number};
use crate::batch::SequenceInput;

/// Numbers beyond the width of a row: rows start at different offsets.
const SPREAD: usize = 1 << 16;

/// Random logit rows: slices of one array of normally distributed numbers, at an offset that depends on the
/// row's last id and its position. A row costs a copy, for any width.
#[derive(Debug)]
pub(super) struct Noise {
    seed: u64,
    numbers: Vec<f32>,
}

impl Noise {
    pub(super) fn new(seed: u64, width: usize) -> Self {
        let numbers = (0..(width + SPREAD) as u64).map(|index| normal(mix(seed ^ mix(index)))).collect();
        Self { seed, numbers }
    }

    /// Logits of the row with this offset.
    pub(super) fn row(&self, offset: usize) -> &[f32] {
        &self.numbers[offset..offset + self.numbers.len() - SPREAD]
    }

    /// Offset of the logits of row `row` of a sequence, below [`SPREAD`].
    pub(super) fn offset(&self, input: &SequenceInput, row: usize) -> u32 {
        let position = (input.cached_len + row) as u64;
        (mix(self.seed ^ mix(row_number(input, row) << 32 | position)) % SPREAD as u64) as u32
    }
}

/// Nearly normal number of mean 0 and variance 1: the sum of four uniform ones of 16 bits each.
fn normal(bits: u64) -> f32 {
    let sum: f32 = (0..4).map(|part| (bits >> (16 * part) & 0xFFFF) as f32 / 65536.0 - 0.5).sum();
    sum * 3f32.sqrt()
}
