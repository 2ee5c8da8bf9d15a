//! IQ4_NL block layout: an f16 scale and 16 bytes of nibbles, which index a non-linear table.

use super::{BlockFormat, F16Scales, GROUP, Iq4Nl, RowScales, split_nibbles};

impl BlockFormat for Iq4Nl {
    const BLOCK: usize = 32;
    const BYTES: usize = 18;
    const BITS: usize = 4;
    const ZERO: u8 = 128;
    // From -127 to 113, plus the zero point 128.
    const TABLE: Option<[u8; 16]> =
        Some([1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241]);
    type Scales = F16Scales;

    fn read(block: &[u8], codes: &mut [u8], scales: RowScales<'_, Self::Scales>) -> Result<(), f32> {
        split_nibbles(GROUP, &block[2..], codes);
        scales.set(block)
    }
}
