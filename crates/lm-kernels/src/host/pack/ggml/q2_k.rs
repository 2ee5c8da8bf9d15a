//! Q2_K block layout: 16 bytes of scales and mins, 64 bytes of codes, and two f16 super-block scales.
//!
//! Byte `i` of each 32 bytes of codes holds those of columns `i`, `32 + i`, `64 + i` and `96 + i`, lowest
//! bits first.

use super::{BlockFormat, FourBitScalesAndMins, Q2K, RowScales, split_pairs};

impl BlockFormat for Q2K {
    const BLOCK: usize = 256;
    const BYTES: usize = 84;
    const BITS: usize = 2;
    const ZERO: u8 = 0;
    type Scales = FourBitScalesAndMins;

    fn read(block: &[u8], codes: &mut [u8], scales: RowScales<'_, Self::Scales>) -> Result<(), f32> {
        split_pairs(&block[16..80], codes);
        scales.set(&block[..16], &block[80..])
    }
}
