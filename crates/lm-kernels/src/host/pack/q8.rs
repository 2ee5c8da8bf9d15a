//! 8 bits: `weight = scale · quant`, a bfloat16 for each 64 columns of a row; 8.25 bits a weight.
//!
//! Byte `4 r + i` of line `j` of a group is column `4 j + i` of row `r`, plus 128.

use super::super::lanes::{F32x16, LANES, Lanes, Line, bf16_to_f32, bfloat_not_below};
use super::integer::{GROUP, IntegerLayout, Tile};
use super::quantize::{Quantize, inverse, low_bits, round};

/// The format's mark.
pub(in crate::host) struct Q8;

impl IntegerLayout for Q8 {
    const BLOCK: usize = 64;
    const GROUP_LINES: usize = 8;
    type Scales = [u16; LANES];

    #[inline(always)]
    fn steps(scales: &[u16; LANES]) -> &[u16; LANES] {
        scales
    }

    fn quant(tile: &Tile<'_, Self>, lane: usize, group: usize, column: usize) -> i8 {
        let line = &tile.lines[group * Self::GROUP_LINES + column / 4];
        (line[4 * lane + column % 4] ^ 0x80) as i8
    }

    fn group_scale(_: &Tile<'_, Self>, _: usize, _: usize) -> i8 {
        1
    }
}

impl Q8 {
    /// Writes the quants of one column of a group whose lines are zeros; integers from -127 to 127.
    #[inline(always)]
    pub(super) fn set(lines: &mut [Line], column: usize, quants: F32x16) {
        for (word, quant) in lines[column / 4].as_chunks_mut().0.iter_mut().zip(quants.0) {
            let byte = low_bits(quant + 128.0) << (8 * (column % 4));
            *word = (u32::from_le_bytes(*word) | byte).to_le_bytes();
        }
    }
}

impl Quantize for Q8 {
    /// The largest magnitude becomes 127; the scale is rounded up, so that nothing is cut off.
    #[inline(always)]
    fn quantize<V: Lanes>(x: &[F32x16], scales: &mut [u16; LANES], lines: &mut [Line]) {
        let largest = x.iter().fold(F32x16::ZERO, |largest, x| largest.zip(*x, |a, b| a.max(b.abs())));
        *scales = largest.map(|largest| largest / 127.0).0.map(bfloat_not_below);
        let inverse = F32x16(scales.map(bf16_to_f32)).map(inverse);
        for (index, x) in x.iter().enumerate() {
            let quants = x.zip(inverse, |x, inverse| round(x * inverse).clamp(-127.0, 127.0));
            let lines = &mut lines[index / GROUP * Self::GROUP_LINES..];
            Self::set(lines, index % GROUP, quants);
        }
    }
}
