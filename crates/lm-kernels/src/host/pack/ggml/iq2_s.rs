//! IQ2_S block layout: an f16 scale; the lower 8 bits of a grid index for each 8 columns; a byte of signs for
//! each 8 columns; 8 bytes with the upper two bits of the indices; 8 bytes of nibbles, a scale for each 16
//! columns.

use super::codebook::{IQ2_LEVELS, IQ2_S, odd_nibble};
use super::{BlockFormat, Int8Scales, Iq2S, RowScales};

impl BlockFormat for Iq2S {
    const BLOCK: usize = 256;
    const BYTES: usize = 82;
    const BITS: usize = 3;
    const ZERO: u8 = IQ2_LEVELS.zero;
    const TABLE: Option<[u8; 16]> = Some(IQ2_LEVELS.table);
    type Scales = Int8Scales<4, 3>;

    fn read(block: &[u8], codes: &mut [u8], scales: RowScales<'_, Self::Scales>) -> Result<(), f32> {
        for (i, codes) in codes.chunks_mut(8).enumerate() {
            let upper = block[66 + i / 4] >> (i % 4 * 2) & 3;
            let number = usize::from(block[2 + i]) | usize::from(upper) << 8;
            IQ2_LEVELS.write(IQ2_S[number], block[34 + i], codes);
        }
        scales.set(block, |group| odd_nibble(&block[74..], group))
    }
}
