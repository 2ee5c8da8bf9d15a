//! IQ1_M: a block is, for each 8 columns, the lower 8 bits of a number of a codebook's eights, then as many nibbles with the upper 3
//! and the sign of what the weights have too much, and four times 16 bits: a factor of 3 bits for each 16 columns, and a quarter of
//! a half in the upper 4.

use super::codebook::{IQ1, SHIFTED, all_or_none, odd};
use super::{BlockFormat, ByteFactors};

/// The type's mark.
pub(in crate::host) struct Iq1M;

impl BlockFormat for Iq1M {
    const BLOCK: usize = 256;
    const BYTES: usize = 56;
    const BITS: usize = 3;
    const ZERO: u8 = SHIFTED.zero;
    const TABLE: Option<[u8; 16]> = Some(SHIFTED.table);
    type Scales = ByteFactors<4, 3>;

    fn read(
        block: &[u8],
        lane: usize,
        _: usize,
        scales: &mut Self::Scales,
        codes: &mut [u8],
    ) -> Result<(), f32> {
        for (i, codes) in codes.chunks_mut(8).enumerate() {
            let nibble = block[32 + i / 2] >> (i % 2 * 4);
            let number = usize::from(block[i]) | usize::from(nibble & 7) << 8;
            SHIFTED.write(IQ1[number], all_or_none(nibble & 8 != 0), codes);
        }
        let word = |index: usize| u16::from_le_bytes([block[48 + 2 * index], block[49 + 2 * index]]);
        let half = (0..4).fold(0, |half, index| half | (word(index) >> 12) << (4 * index));
        scales.set(lane, half.to_le_bytes(), |group| odd(u32::from(word(group / 4) >> (group % 4 * 3) & 7)))
    }
}
