//! IQ2_S: a block is a half, for each 8 columns the lower 8 bits of a number of a codebook's eights, as many bytes of signs, 8 bytes
//! with the upper two bits of the numbers, and 8 bytes of nibbles, a factor for each 16 columns.

use super::codebook::{EIGHTS, IQ2_S, odd_nibble};
use super::{BlockFormat, ByteFactors};

/// The type's mark.
pub(in crate::host) struct Iq2S;

impl BlockFormat for Iq2S {
    const BLOCK: usize = 256;
    const BYTES: usize = 82;
    const BITS: usize = 3;
    const ZERO: u8 = EIGHTS.zero;
    const TABLE: Option<[u8; 16]> = Some(EIGHTS.table);
    type Scales = ByteFactors<4, 3>;

    fn read(
        block: &[u8],
        lane: usize,
        _: usize,
        scales: &mut Self::Scales,
        codes: &mut [u8],
    ) -> Result<(), f32> {
        for (i, codes) in codes.chunks_mut(8).enumerate() {
            let upper = block[66 + i / 4] >> (i % 4 * 2) & 3;
            let number = usize::from(block[2 + i]) | usize::from(upper) << 8;
            EIGHTS.write(IQ2_S[number], block[34 + i], codes);
        }
        scales.set(lane, [block[0], block[1]], |group| odd_nibble(&block[74..], group))
    }
}
