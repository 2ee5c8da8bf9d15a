//! IQ3_XXS block layout: an f16 scale; an 8-bit grid index for each 4 columns; 32 bits for each 32 columns:
//! four times 7 sign bits, and a 4-bit scale.

use super::codebook::{IQ3_XXS, IQ3_XXS_LEVELS, even_signs, odd, word};
use super::{BlockFormat, Int8Scales, Iq3Xxs, RowScales};

impl BlockFormat for Iq3Xxs {
    const BLOCK: usize = 256;
    const BYTES: usize = 98;
    const BITS: usize = 4;
    const ZERO: u8 = IQ3_XXS_LEVELS.zero;
    const TABLE: Option<[u8; 16]> = Some(IQ3_XXS_LEVELS.table);
    type Scales = Int8Scales<2, 2>;

    fn read(block: &[u8], codes: &mut [u8], scales: RowScales<'_, Self::Scales>) -> Result<(), f32> {
        for (i, codes) in codes.chunks_mut(4).enumerate() {
            let signs = even_signs(word(&block[66 + i / 8 * 4..]) >> (i / 2 % 4 * 7));
            IQ3_XXS_LEVELS.write(IQ3_XXS[usize::from(block[2 + i])], signs >> (i % 2 * 4), codes);
        }
        let factor = |group: usize| odd(word(&block[66 + 4 * group..]) >> 28);
        scales.set(block, factor)
    }
}
