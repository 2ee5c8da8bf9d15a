//! Q4_1 block layout: f16 scale and offset, and 16 bytes of nibbles.

use super::{BlockFormat, F16ScalesAndOffsets, GROUP, Q4_1, RowScales, split_nibbles};

impl BlockFormat for Q4_1 {
    const BLOCK: usize = 32;
    const BYTES: usize = 20;
    const BITS: usize = 4;
    const ZERO: u8 = 0;
    type Scales = F16ScalesAndOffsets;

    fn read(block: &[u8], codes: &mut [u8], scales: RowScales<'_, Self::Scales>) -> Result<(), f32> {
        split_nibbles(GROUP, &block[4..], codes);
        scales.set(block)
    }
}
