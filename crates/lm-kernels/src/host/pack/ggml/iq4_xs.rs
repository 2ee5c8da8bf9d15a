//! IQ4_XS block layout: an f16 scale; 16 bits with the upper two bits of the 6-bit scales; four bytes with
//! their lower four; 128 bytes of nibbles, which index IQ4_NL's table.

use super::{BlockFormat, GROUP, Int8Scales, Iq4Nl, Iq4Xs, RowScales, split_nibbles};

impl BlockFormat for Iq4Xs {
    const BLOCK: usize = 256;
    const BYTES: usize = 136;
    const BITS: usize = 4;
    const ZERO: u8 = Iq4Nl::ZERO;
    const TABLE: Option<[u8; 16]> = Iq4Nl::TABLE;
    type Scales = Int8Scales<2, 0>;

    fn read(block: &[u8], codes: &mut [u8], scales: RowScales<'_, Self::Scales>) -> Result<(), f32> {
        split_nibbles(GROUP, &block[8..], codes);
        let upper = u16::from_le_bytes([block[2], block[3]]);
        let factor = |group: usize| {
            let low = block[4 + group / 2] >> (group % 2 * 4) & 15;
            let high = (upper >> (2 * group) & 3) as u8;
            (low | high << 4) as i8 - 32
        };
        scales.set(block, factor)
    }
}
