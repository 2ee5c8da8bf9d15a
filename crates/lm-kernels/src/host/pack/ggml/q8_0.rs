//! Q8_0 block layout: an f16 scale and 32 signed bytes.

use half::f16;

use super::quantize::{BLOCK, QuantizeBlock, reciprocal};
use super::{BlockFormat, F16Scales, Q8_0, RowScales};

impl BlockFormat for Q8_0 {
    const BLOCK: usize = 32;
    const BYTES: usize = 34;
    const BITS: usize = 8;
    const ZERO: u8 = 128;
    const QUANTIZE: Option<QuantizeBlock> = Some(quantize);
    type Scales = F16Scales;

    fn read(block: &[u8], codes: &mut [u8], scales: RowScales<'_, Self::Scales>) -> Result<(), f32> {
        for (code, byte) in codes.iter_mut().zip(&block[2..]) {
            *code = byte ^ 0x80;
        }
        scales.set(block)
    }
}

/// The largest magnitude becomes 127 or -127; ties are rounded away from zero.
fn quantize(values: &[f32; BLOCK], block: &mut [u8]) {
    let step = values.iter().fold(0.0_f32, |largest, value| largest.max(value.abs())) / 127.0;
    let factor = reciprocal(step);
    block[..2].copy_from_slice(&f16::from_f32(step).to_le_bytes());
    for (byte, value) in block[2..].iter_mut().zip(values) {
        *byte = (value * factor).round() as i8 as u8;
    }
}
