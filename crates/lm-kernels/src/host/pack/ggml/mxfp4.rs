//! MXFP4: a block is an exponent and 16 bytes of nibbles, which number the entries of a table.
//!
//! # Source
//! OCP Microscaling Formats (MX) Specification 1.0: numbers of one sign, two exponent and one mantissa bit; a shared power of two.

use super::{BlockFormat, Exponents, split_nibbles};

/// The type's mark.
pub(in crate::host) struct Mxfp4;

impl BlockFormat for Mxfp4 {
    const BLOCK: usize = 32;
    const BYTES: usize = 17;
    const BITS: usize = 4;
    const ZERO: u8 = 12;
    // Twice the numbers, from -12 to 12, plus 12.
    const TABLE: Option<[u8; 16]> = Some([12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0]);
    type Scales = Exponents;

    fn read(
        block: &[u8],
        lane: usize,
        group: usize,
        scales: &mut Exponents,
        codes: &mut [u8],
    ) -> Result<(), f32> {
        split_nibbles(&block[1..], codes);
        scales.set(lane, group, block[0])
    }
}
