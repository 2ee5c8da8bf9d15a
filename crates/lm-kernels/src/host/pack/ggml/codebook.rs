//! Codebooks (grids): an index selects the magnitudes of four or eight columns, and a bit gives the sign of
//! each.
//!
//! No instruction looks up eight bytes for each of 16 rows, so magnitude and sign become a code of 3 or 4
//! bits when a block is read, which indexes a table like the codes of other types.

use super::grids;

/// Quants of the digits of a codebook entry, by digit and sign.
pub(super) struct Levels {
    pub zero: u8,
    /// By code: the digit in the low bits, the sign above it.
    pub table: [u8; 16],
    digit_bits: u32,
}

/// Magnitudes of IQ2.
pub(super) const IQ2_LEVELS: Levels = Levels::symmetric(43, 2, &[8, 25, 43]);
/// Magnitudes of IQ3_XXS.
pub(super) const IQ3_XXS_LEVELS: Levels = Levels::symmetric(62, 3, &[4, 12, 20, 28, 36, 44, 52, 62]);
/// Magnitudes of IQ3_S.
pub(super) const IQ3_S_LEVELS: Levels = Levels::symmetric(15, 3, &[1, 3, 5, 7, 9, 11, 13, 15]);
/// IQ1: 8 times -1, 0 or 1, plus a delta of 1; minus 1 with the sign.
pub(super) const IQ1_LEVELS: Levels =
    Levels { zero: 9, table: [2, 10, 18, 0, 0, 8, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0], digit_bits: 2 };

impl Levels {
    const fn symmetric(zero: u8, digit_bits: u32, magnitudes: &[u8]) -> Self {
        let mut table = [0; 16];
        let mut digit = 0;
        while digit < magnitudes.len() {
            table[digit] = zero + magnitudes[digit];
            table[digit | 1 << digit_bits] = zero - magnitudes[digit];
            digit += 1;
        }
        Self { zero, table, digit_bits }
    }

    /// Writes the codes of an entry's columns; bit `i` of `signs` is the sign of column `i`.
    pub fn write(&self, entry: u16, signs: u8, codes: &mut [u8]) {
        let mask = (1 << self.digit_bits) - 1;
        for (column, code) in codes.iter_mut().enumerate() {
            let digit = (entry >> (self.digit_bits * column as u32) & mask) as u8;
            *code = digit | (signs >> column & 1) << self.digit_bits;
        }
    }
}

/// The codebooks, with an entry's digits from the lowest bits on.
pub(super) static IQ2_XXS: [u16; 256] = entries(8, 3, &grids::IQ2_XXS);
pub(super) static IQ2_XS: [u16; 512] = entries(8, 3, &grids::IQ2_XS);
pub(super) static IQ2_S: [u16; 1024] = entries(8, 3, &grids::IQ2_S);
pub(super) static IQ3_XXS: [u16; 256] = entries(4, 8, &grids::IQ3_XXS);
pub(super) static IQ3_S: [u16; 512] = entries(4, 8, &grids::IQ3_S);
pub(super) static IQ1: [u16; 2048] = entries(8, 3, &grids::IQ1);

/// Numbers with this many digits in this base whose bits are set in `set`, in ascending order, each digit
/// in bits of its own.
const fn entries<const COUNT: usize>(digits: u32, base: u16, set: &[u64]) -> [u16; COUNT] {
    let digit_bits = 16 - (base - 1).leading_zeros();
    let mut entries = [0; COUNT];
    let (mut number, mut index) = (0, 0);
    while number < base.pow(digits) {
        if set[number as usize / 64] >> (number % 64) & 1 != 0 {
            let (mut rest, mut digit) = (number, 0);
            while digit < digits {
                entries[index] |= (rest % base) << (digit * digit_bits);
                rest /= base;
                digit += 1;
            }
            index += 1;
        }
        number += 1;
    }
    assert!(index == COUNT);
    entries
}

/// Seven sign bits and their parity as the eighth, so that an even number of them is set.
pub(super) fn even_signs(bits: u32) -> u8 {
    let seven = (bits & 127) as u8;
    seven | (seven.count_ones() as u8 & 1) << 7
}

/// The same sign for eight columns.
pub(super) fn all_or_none(set: bool) -> u8 {
    if set { u8::MAX } else { 0 }
}

/// The first four bytes as a little-endian integer.
pub(super) fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// The odd scale `2n + 1`.
pub(super) fn odd(number: u32) -> i8 {
    2 * number as i8 + 1
}

/// The odd scale of a nibble; the low nibble of a byte comes first.
pub(super) fn odd_nibble(nibbles: &[u8], index: usize) -> i8 {
    odd(u32::from(nibbles[index / 2] >> (index % 2 * 4) & 15))
}
