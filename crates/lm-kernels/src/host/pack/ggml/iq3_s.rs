//! IQ3_S block layout: an f16 scale; the lower 8 bits of a grid index for each 4 columns; 8 bytes with their
//! ninth bits; a sign bit for each column; 4 bytes of nibbles, a scale for each 32 columns.

use super::codebook::{IQ3_S, IQ3_S_LEVELS, odd_nibble};
use super::{BlockFormat, Int8Scales, Iq3S, RowScales};

impl BlockFormat for Iq3S {
    const BLOCK: usize = 256;
    const BYTES: usize = 110;
    const BITS: usize = 4;
    const ZERO: u8 = IQ3_S_LEVELS.zero;
    const TABLE: Option<[u8; 16]> = Some(IQ3_S_LEVELS.table);
    type Scales = Int8Scales<2, 0>;

    fn read(block: &[u8], codes: &mut [u8], scales: RowScales<'_, Self::Scales>) -> Result<(), f32> {
        for (i, codes) in codes.chunks_mut(4).enumerate() {
            let ninth = block[66 + i / 8] >> (i % 8) & 1;
            let number = usize::from(block[2 + i]) | usize::from(ninth) << 8;
            IQ3_S_LEVELS.write(IQ3_S[number], block[74 + i / 2] >> (i % 2 * 4), codes);
        }
        scales.set(block, |group| odd_nibble(&block[106..], group))
    }
}
