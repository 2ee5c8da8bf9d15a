//! Q5_1 block layout: f16 scale and offset, the 32 fifth bits, and 16 bytes of nibbles.

use super::{BlockFormat, F16ScalesAndOffsets, GROUP, Q5_1, RowScales, add_fifth_bits, split_nibbles};

impl BlockFormat for Q5_1 {
    const BLOCK: usize = 32;
    const BYTES: usize = 24;
    const BITS: usize = 5;
    const ZERO: u8 = 0;
    type Scales = F16ScalesAndOffsets;

    fn read(block: &[u8], codes: &mut [u8], scales: RowScales<'_, Self::Scales>) -> Result<(), f32> {
        split_nibbles(GROUP, &block[8..], codes);
        add_fifth_bits(&block[4..8], codes);
        scales.set(block)
    }
}
