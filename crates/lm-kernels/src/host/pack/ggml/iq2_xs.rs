//! IQ2_XS block layout: an f16 scale; 16 bits for each 8 columns (a 9-bit grid index and 7 sign bits); 8
//! bytes of nibbles, a scale for each 16 columns.

use super::codebook::{IQ2_LEVELS, IQ2_XS, even_signs, odd_nibble};
use super::{BlockFormat, Int8Scales, Iq2Xs, RowScales};

impl BlockFormat for Iq2Xs {
    const BLOCK: usize = 256;
    const BYTES: usize = 74;
    const BITS: usize = 3;
    const ZERO: u8 = IQ2_LEVELS.zero;
    const TABLE: Option<[u8; 16]> = Some(IQ2_LEVELS.table);
    type Scales = Int8Scales<4, 3>;

    fn read(block: &[u8], codes: &mut [u8], scales: RowScales<'_, Self::Scales>) -> Result<(), f32> {
        for (word, codes) in block[2..66].as_chunks::<2>().0.iter().zip(codes.chunks_mut(8)) {
            let word = u16::from_le_bytes(*word);
            IQ2_LEVELS.write(IQ2_XS[usize::from(word & 511)], even_signs(u32::from(word >> 9)), codes);
        }
        scales.set(block, |group| odd_nibble(&block[66..], group))
    }
}
