//! Q5_0 block layout: an f16 scale, the 32 fifth bits, and 16 bytes of nibbles.

use super::{BlockFormat, F16Scales, GROUP, Q5_0, RowScales, add_fifth_bits, split_nibbles};

impl BlockFormat for Q5_0 {
    const BLOCK: usize = 32;
    const BYTES: usize = 22;
    const BITS: usize = 5;
    const ZERO: u8 = 16;
    type Scales = F16Scales;

    fn read(block: &[u8], codes: &mut [u8], scales: RowScales<'_, Self::Scales>) -> Result<(), f32> {
        split_nibbles(GROUP, &block[6..], codes);
        add_fifth_bits(&block[2..6], codes);
        scales.set(block)
    }
}
