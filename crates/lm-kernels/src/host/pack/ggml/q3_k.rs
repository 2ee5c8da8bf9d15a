//! Q3_K block layout: 32 bytes of third bits, 64 bytes of the lower two bits, 12 bytes of scales, and an f16
//! super-block scale.
//!
//! The lower bits are laid out as in Q2_K. Bit `j` of byte `i` of the third bits belongs to column
//! `32 j + i`.

use super::{BlockFormat, Q3K, RowScales, SixBitScales, add_bits, split_pairs};

impl BlockFormat for Q3K {
    const BLOCK: usize = 256;
    const BYTES: usize = 110;
    const BITS: usize = 3;
    const ZERO: u8 = 4;
    type Scales = SixBitScales;

    fn read(block: &[u8], codes: &mut [u8], scales: RowScales<'_, Self::Scales>) -> Result<(), f32> {
        split_pairs(&block[32..96], codes);
        add_bits(2, &block[..32], codes);
        scales.set(&block[96..])
    }
}
