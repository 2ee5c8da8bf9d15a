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

/// Brings codes of which neighbours share a byte to the order of ggml, where a byte holds columns `i` and `16 + i`.
pub(super) fn interleave(pairs: &[u8], exponent: u8, block: &mut [u8; Mxfp4::BYTES]) {
    block[0] = exponent;
    for i in 0..16 {
        let code = |column: usize| pairs[column / 2] >> (column % 2 * 4) & 15;
        block[1 + i] = code(i) | code(16 + i) << 4;
    }
}
