//! Q8 layout: `weight = scale · quant`, with a bf16 scale per 64 columns of a row; 8.25 bits per weight.
//!
//! Byte `4 r + i` of line `j` of a group is column `4 j + i` of row `r`, with zero point 128.

use super::super::lanes::{F32x16, LANES, Lanes, Line, bf16_to_f32, bfloat_not_below};
use super::integer::{GROUP, IntegerLayout, Tile};
use super::quantize::{Quantize, SHIFT, inverse, low_bits};

/// Marker type of Q8.
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
    /// Writes the quants of one column of a group whose lines are zero; integers from -127 to 127.
    #[inline(always)]
    pub(super) fn set(lines: &mut [Line], column: usize, quants: F32x16) {
        for (word, quant) in lines[column / 4].as_chunks_mut().0.iter_mut().zip(quants.0) {
            let byte = low_bits(quant + 128.0) << (8 * (column % 4));
            *word = (u32::from_le_bytes(*word) | byte).to_le_bytes();
        }
    }
}

impl Quantize for Q8 {
    /// The largest magnitude maps to 127; the scale is rounded up, so that no value is clipped.
    #[inline(always)]
    fn quantize<V: Lanes>(x: &[F32x16], _: &[F32x16], scales: &mut [u16; LANES], lines: &mut [Line]) {
        // In registers throughout: loops over lanes compile to scattered loads.
        let (one, minus) = (V::splat(1.0), V::splat(-1.0));
        let mut greatest = V::splat(0.0);
        for x in x {
            let x = V::load(&x.0);
            greatest = greatest.max(x).max(x.mul(minus));
        }
        let mut largest = F32x16::ZERO;
        greatest.store(&mut largest.0);
        // Absolute value, since the largest of zeros may be -0.
        *scales = largest.map(|largest| largest.abs() / 127.0).0.map(bfloat_not_below);
        let inverse = V::load(&F32x16(scales.map(bf16_to_f32)).map(inverse).0);
        for (index, x) in x.iter().enumerate() {
            // The computation of `round`.
            let rounded =
                V::load(&x.0).mul(inverse).mul_add(one, V::splat(SHIFT)).mul_add(one, V::splat(-SHIFT));
            let mut quants = F32x16::ZERO;
            rounded.max(V::splat(-127.0)).min(V::splat(127.0)).store(&mut quants.0);
            let lines = &mut lines[index / GROUP * Self::GROUP_LINES..];
            Self::set(lines, index % GROUP, quants);
        }
    }
}
