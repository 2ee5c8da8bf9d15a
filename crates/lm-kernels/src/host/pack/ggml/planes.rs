//! Bit-plane layout of the codes of 32 columns of 16 rows: as many lines as a code has bits.
//!
//! Expanded, they are 8 lines: byte `4 r + i` of line `j` is the code of column `4 j + i` of row `r`. Codes
//! of 8 bits are stored like this. Others are split into planes, the lowest bits first: four bits (if the
//! width has a 4 in it), two (if it has a 2) and one.
//!
//! - The plane of nibbles has 4 lines; line `k` has the codes of line `k` in the low nibbles and those of
//!   `4 + k` in the high ones.
//! - The plane of bit pairs has 2 lines; line `k` has those of lines `k`, `2 + k`, `4 + k` and `6 + k`,
//!   lowest bits first.
//! - The plane of single bits has one line; bit `j` belongs to line `j`.

use super::super::super::lanes::{Lanes, Line};
use super::{BlockFormat, GROUP};

/// Lines of the expanded codes of 32 columns.
pub(in crate::host) const EXPANDED_LINES: usize = GROUP / 4;

/// Planes of codes with a given number of bits.
struct Planes {
    nibbles: Option<Plane>,
    pairs: Option<Plane>,
    ones: Option<Plane>,
}

/// First line of a plane, and the position of its bits in a code.
#[derive(Clone, Copy)]
struct Plane {
    line: usize,
    bit: i32,
}

impl Planes {
    #[inline(always)]
    const fn of(bits: usize) -> Self {
        let (pairs, ones) = (bits & 4, bits & 6);
        Self {
            nibbles: if bits & 4 != 0 { Some(Plane { line: 0, bit: 0 }) } else { None },
            pairs: if bits & 2 != 0 { Some(Plane { line: pairs, bit: pairs as i32 }) } else { None },
            ones: if bits & 1 != 0 { Some(Plane { line: ones, bit: ones as i32 }) } else { None },
        }
    }
}

/// Unpacks line `j` of the expanded codes of 32 columns, in bytes.
#[inline(always)]
pub(in crate::host) fn code<V: Lanes, F: BlockFormat>(lines: &[Line], j: usize) -> V::Bytes {
    let part = |line: usize, shift: i32, mask: u8| V::bits_of(V::load_bytes(&lines[line]), shift, mask);
    if F::BITS == 8 {
        return V::load_bytes(&lines[j]);
    }
    let planes = Planes::of(F::BITS);
    let at = j as i32;
    let mut code = None;
    if let Some(plane) = planes.nibbles {
        code = Some(part(plane.line + j % 4, at / 4 * 4, 15));
    }
    if let Some(plane) = planes.pairs {
        let bits = part(plane.line + j % 2, at / 2 * 2 - plane.bit, 3 << plane.bit);
        code = Some(code.map_or(bits, |code| V::or(code, bits)));
    }
    if let Some(plane) = planes.ones {
        let bits = part(plane.line, at - plane.bit, 1 << plane.bit);
        code = Some(code.map_or(bits, |code| V::or(code, bits)));
    }
    let code = code.expect("a code has bits");
    match &F::TABLE {
        Some(table) => V::shuffle(table, code),
        None => code,
    }
}

/// Unpacks the same for one row, four bytes.
pub(super) fn row_code<F: BlockFormat>(lines: &[Line], lane: usize, j: usize) -> [u8; 4] {
    let word = |line: usize| u32::from_le_bytes(lines[line].as_chunks().0[lane]);
    if F::BITS == 8 {
        return word(j).to_le_bytes();
    }
    let planes = Planes::of(F::BITS);
    let mut code = 0;
    if let Some(plane) = planes.nibbles {
        code |= word(plane.line + j % 4) >> (j / 4 * 4) & 0x0f0f_0f0f;
    }
    if let Some(plane) = planes.pairs {
        code |= (word(plane.line + j % 2) >> (j / 2 * 2) & 0x0303_0303) << plane.bit;
    }
    if let Some(plane) = planes.ones {
        code |= (word(plane.line) >> j & 0x0101_0101) << plane.bit;
    }
    let code = code.to_le_bytes();
    F::TABLE.map_or(code, |table| code.map(|code| table[usize::from(code)]))
}

/// Stores the codes of 32 columns of a row into lines that are zero there.
pub(super) fn store<F: BlockFormat>(codes: &[u8; GROUP], lane: usize, lines: &mut [Line]) {
    let mut expanded = [0_u32; EXPANDED_LINES];
    for (word, codes) in expanded.iter_mut().zip(codes.as_chunks().0) {
        *word = u32::from_le_bytes(*codes);
    }
    let mut set = |line: usize, word: u32| {
        let place = &mut lines[line].as_chunks_mut::<4>().0[lane];
        *place = (u32::from_le_bytes(*place) | word).to_le_bytes();
    };
    let planes = Planes::of(if F::BITS == 8 { 0 } else { F::BITS });
    for (j, word) in expanded.into_iter().enumerate() {
        if F::BITS == 8 {
            set(j, word);
        }
        if let Some(plane) = planes.nibbles {
            set(plane.line + j % 4, (word & 0x0f0f_0f0f) << (j / 4 * 4));
        }
        if let Some(plane) = planes.pairs {
            set(plane.line + j % 2, (word >> plane.bit & 0x0303_0303) << (j / 2 * 2));
        }
        if let Some(plane) = planes.ones {
            set(plane.line, (word >> plane.bit & 0x0101_0101) << j);
        }
    }
}
