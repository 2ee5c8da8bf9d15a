//! Q4_0 block layout: an f16 scale and 16 bytes of nibbles.

use half::f16;

use super::quantize::{BLOCK, QuantizeBlock, reciprocal};
use super::{BlockFormat, F16Scales, GROUP, Q4_0, RowScales, split_nibbles};

impl BlockFormat for Q4_0 {
    const BLOCK: usize = 32;
    const BYTES: usize = 18;
    const BITS: usize = 4;
    const ZERO: u8 = 8;
    const QUANTIZE: Option<QuantizeBlock> = Some(quantize);
    type Scales = F16Scales;

    fn read(block: &[u8], codes: &mut [u8], scales: RowScales<'_, Self::Scales>) -> Result<(), f32> {
        split_nibbles(GROUP, &block[2..], codes);
        scales.set(block)
    }
}

/// The first value of largest magnitude becomes -8; the others are rounded to nearest and clamped to 7.
fn quantize(values: &[f32; BLOCK], block: &mut [u8]) {
    let first_largest =
        |largest: f32, value: &f32| if value.abs() > largest.abs() { *value } else { largest };
    let step = values[1..].iter().fold(values[0], first_largest) / -8.0;
    let factor = reciprocal(step);
    block[..2].copy_from_slice(&f16::from_f32(step).to_le_bytes());
    let code = |value: f32| ((value * factor + 8.5) as u8).min(15);
    let (low, high) = values.split_at(BLOCK / 2);
    for ((byte, low), high) in block[2..].iter_mut().zip(low).zip(high) {
        *byte = code(*low) | code(*high) << 4;
    }
}
