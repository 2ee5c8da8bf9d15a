//! MXFP4 block layout: an exponent byte and 16 bytes of nibbles, which index a table of the FP4 values.
//!
//! # Source
//! OCP Microscaling Formats (MX) Specification 1.0: E2M1 values with a shared power-of-two scale.

use super::{BlockFormat, E8M0Scales, GROUP, Mxfp4, RowScales, split_nibbles};

impl BlockFormat for Mxfp4 {
    const BLOCK: usize = 32;
    const BYTES: usize = 17;
    const BITS: usize = 4;
    const ZERO: u8 = 12;
    // Twice the E2M1 values, from -12 to 12, plus the zero point 12.
    const TABLE: Option<[u8; 16]> = Some([12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0]);
    type Scales = E8M0Scales;

    fn read(block: &[u8], codes: &mut [u8], scales: RowScales<'_, Self::Scales>) -> Result<(), f32> {
        split_nibbles(GROUP, &block[1..], codes);
        scales.set(block[0])
    }
}
