//! IQ1_S block layout: an f16 scale; the lower 8 bits of a grid index for each 8 columns; 16 bits for each 32
//! columns: the upper 3 bits of four grid indices, a 3-bit scale, and the sign of the delta.

use super::codebook::{IQ1, IQ1_LEVELS, all_or_none, odd};
use super::{BlockFormat, GROUP, Int8Scales, Iq1S, RowScales};

impl BlockFormat for Iq1S {
    const BLOCK: usize = 256;
    const BYTES: usize = 50;
    const BITS: usize = 3;
    const ZERO: u8 = IQ1_LEVELS.zero;
    const TABLE: Option<[u8; 16]> = Some(IQ1_LEVELS.table);
    type Scales = Int8Scales<2, 3>;

    fn read(block: &[u8], codes: &mut [u8], scales: RowScales<'_, Self::Scales>) -> Result<(), f32> {
        let word = |group: usize| u16::from_le_bytes([block[34 + 2 * group], block[35 + 2 * group]]);
        for (group, codes) in codes.chunks_mut(GROUP).enumerate() {
            let word = word(group);
            for (i, codes) in codes.chunks_mut(8).enumerate() {
                let number = usize::from(block[2 + 4 * group + i]) | usize::from(word >> (3 * i) & 7) << 8;
                IQ1_LEVELS.write(IQ1[number], all_or_none(word >> 15 != 0), codes);
            }
        }
        scales.set(block, |group| odd(u32::from(word(group) >> 12 & 7)))
    }
}
