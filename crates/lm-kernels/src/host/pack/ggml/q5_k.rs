//! Q5_K block layout: 16 bytes of scales, 32 bytes of fifth bits, and 128 bytes of nibbles.
//!
//! Nibbles are laid out as in Q4_K. Bit `j` of byte `i` of the fifth bits belongs to column `32 j + i`.

use super::{BlockFormat, Q5K, RowScales, SixBitScalesAndMins, add_bits, split_nibbles};

impl BlockFormat for Q5K {
    const BLOCK: usize = 256;
    const BYTES: usize = 176;
    const BITS: usize = 5;
    const ZERO: u8 = 0;
    type Scales = SixBitScalesAndMins;

    fn read(block: &[u8], codes: &mut [u8], scales: RowScales<'_, Self::Scales>) -> Result<(), f32> {
        split_nibbles(64, &block[48..], codes);
        add_bits(4, &block[16..48], codes);
        scales.set(block)
    }
}
