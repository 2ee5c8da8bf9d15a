//! IQ2_XXS block layout: an f16 scale and, for each 32 columns, four 8-bit grid indices of 8 columns each,
//! then 32 bits: four times 7 sign bits, and a 4-bit scale.

use super::codebook::{IQ2_LEVELS, IQ2_XXS, even_signs, odd, word};
use super::{BlockFormat, GROUP, Int8Scales, Iq2Xxs, RowScales};

impl BlockFormat for Iq2Xxs {
    const BLOCK: usize = 256;
    const BYTES: usize = 66;
    const BITS: usize = 3;
    const ZERO: u8 = IQ2_LEVELS.zero;
    const TABLE: Option<[u8; 16]> = Some(IQ2_LEVELS.table);
    type Scales = Int8Scales<2, 3>;

    fn read(block: &[u8], codes: &mut [u8], scales: RowScales<'_, Self::Scales>) -> Result<(), f32> {
        for (words, codes) in block[2..].as_chunks::<8>().0.iter().zip(codes.chunks_mut(GROUP)) {
            let signs = word(&words[4..]);
            for (i, codes) in codes.chunks_mut(8).enumerate() {
                IQ2_LEVELS.write(IQ2_XXS[usize::from(words[i])], even_signs(signs >> (7 * i)), codes);
            }
        }
        let factor = |group: usize| odd(word(&block[6 + 8 * group..]) >> 28);
        scales.set(block, factor)
    }
}
