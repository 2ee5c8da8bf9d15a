//! Q6_K block layout: 128 bytes of nibbles, 64 bytes of the upper two bits, 16 signed bytes of scales, and an
//! f16 super-block scale.
//!
//! Byte `i` of each 64 bytes of nibbles holds those of columns `i` and `64 + i`; the upper bits are laid out
//! as the codes of Q2_K.

use super::{BlockFormat, Int8Scales, Q6K, RECORD, RowScales, split_nibbles, split_pairs};

impl BlockFormat for Q6K {
    const BLOCK: usize = 256;
    const BYTES: usize = 210;
    const BITS: usize = 6;
    const ZERO: u8 = 32;
    type Scales = Int8Scales<4, 0>;

    fn read(block: &[u8], codes: &mut [u8], scales: RowScales<'_, Self::Scales>) -> Result<(), f32> {
        let mut upper = [0; RECORD];
        split_pairs(&block[128..192], &mut upper);
        split_nibbles(128, block, codes);
        for (code, upper) in codes.iter_mut().zip(upper) {
            *code |= upper << 4;
        }
        scales.set(&block[208..], |group| block[192 + group] as i8)
    }
}
