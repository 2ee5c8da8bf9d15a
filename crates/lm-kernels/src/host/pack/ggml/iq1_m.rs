//! IQ1_M block layout: the lower 8 bits of a grid index for each 8 columns; a nibble for each 8 columns with
//! the upper 3 bits of the index and the sign of the delta; four 16-bit words with a 3-bit scale for each 16
//! columns, and a quarter of the f16 super-block scale in the upper 4 bits.

use super::codebook::{IQ1, IQ1_LEVELS, all_or_none, odd};
use super::{BlockFormat, Int8Scales, Iq1M, RowScales};

impl BlockFormat for Iq1M {
    const BLOCK: usize = 256;
    const BYTES: usize = 56;
    const BITS: usize = 3;
    const ZERO: u8 = IQ1_LEVELS.zero;
    const TABLE: Option<[u8; 16]> = Some(IQ1_LEVELS.table);
    type Scales = Int8Scales<4, 3>;

    fn read(block: &[u8], codes: &mut [u8], scales: RowScales<'_, Self::Scales>) -> Result<(), f32> {
        for (i, codes) in codes.chunks_mut(8).enumerate() {
            let nibble = block[32 + i / 2] >> (i % 2 * 4);
            let number = usize::from(block[i]) | usize::from(nibble & 7) << 8;
            IQ1_LEVELS.write(IQ1[number], all_or_none(nibble & 8 != 0), codes);
        }
        let word = |index: usize| u16::from_le_bytes([block[48 + 2 * index], block[49 + 2 * index]]);
        let half = (0..4).fold(0, |half, index| half | (word(index) >> 12) << (4 * index));
        scales.set(&half.to_le_bytes(), |group| odd(u32::from(word(group / 4) >> (group % 4 * 3) & 7)))
    }
}
