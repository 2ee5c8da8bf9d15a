//! Q4_K block layout: 16 bytes of scales and 128 bytes of nibbles.
//!
//! Byte `i` of each 32 bytes of nibbles holds those of columns `i` and `32 + i`.

use super::{BlockFormat, Q4K, RowScales, SixBitScalesAndMins, split_nibbles};

impl BlockFormat for Q4K {
    const BLOCK: usize = 256;
    const BYTES: usize = 144;
    const BITS: usize = 4;
    const ZERO: u8 = 0;
    type Scales = SixBitScalesAndMins;

    fn read(block: &[u8], codes: &mut [u8], scales: RowScales<'_, Self::Scales>) -> Result<(), f32> {
        split_nibbles(64, &block[16..], codes);
        scales.set(block)
    }
}
