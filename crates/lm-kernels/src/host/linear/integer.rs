//! Few rows times weights in the integer formats.
//!
//! All between two scales is a sum of integers, exact in any order. The float work of an output is one chain over the blocks,
//! in order: `sum = (scale of the weights · scale of the row) · dot + sum`, rounded after the product of the scales and at the
//! end. The kernels for few rows and for [many](super::panels) therefore give the same bits.

// Loops over registers are plain loops with indices: closures are not compiled for the features of their caller unless the
// compiler happens to inline them.
#![allow(clippy::needless_range_loop)]

use std::ops::Range;

use super::super::lanes::{LANES, Lanes, Line};
use super::super::pack::{IntegerLayout, Tile};
use super::activations::{QuantizedRows, Span};

/// What the kernels need of an integer format.
pub(super) trait IntegerWeights: IntegerLayout {
    /// Lines of a block of unsigned bytes, four columns each.
    const BLOCK_LINES: usize = Self::BLOCK / 4;

    /// The sums of the products of a tile with `M` rows, `row` being the first.
    fn multiply<V: Lanes, const M: usize>(tile: &Tile<'_, Self>, x: &QuantizedRows, row: usize) -> [V; M];

    /// The quants of 256 columns, times the integer scale of their group and plus 128, as a multiple of 16 lines; what is added to make
    /// it one may hold anything, for the rows are zero there. `room` is theirs if they must be computed.
    fn bytes<'a>(tile: &Tile<'a, Self>, span: usize, room: &'a mut [Line; SPAN_LINES]) -> &'a [Line];
}

/// Lines of the unsigned bytes of 256 columns.
pub(super) const SPAN_LINES: usize = super::activations::SPAN / 4;

/// Products of the rows `rows` with two tiles, whose quants are used as they are stored; `out` is `[rows, 2, 16]`.
#[inline(always)]
pub(super) fn multiply<V: Lanes, F: IntegerWeights>(
    tiles: &[Tile<'_, F>; 2],
    x: &QuantizedRows,
    rows: Range<usize>,
    out: &mut [[[f32; LANES]; 2]],
) {
    for (t, tile) in tiles.iter().enumerate() {
        let mut done = 0;
        while done < out.len() {
            let row = rows.start + done;
            let out = &mut out[done..];
            done += match out.len() {
                1 => few::<V, F, 1>(tile, x, row, t, out),
                2..4 => few::<V, F, 2>(tile, x, row, t, out),
                8.. if V::MANY_REGISTERS => few::<V, F, 8>(tile, x, row, t, out),
                _ => few::<V, F, 4>(tile, x, row, t, out),
            };
        }
    }
}

/// `M` rows with tile `t` of the two. Returns how many rows that are.
#[inline(always)]
fn few<V: Lanes, F: IntegerWeights, const M: usize>(
    tile: &Tile<'_, F>,
    x: &QuantizedRows,
    row: usize,
    t: usize,
    out: &mut [[[f32; LANES]; 2]],
) -> usize {
    let sums = F::multiply::<V, M>(tile, x, row);
    for m in 0..M {
        sums[m].store(&mut out[m][t]);
    }
    M
}

/// One step of the outputs' chains: the dot products of a block, times the scales of the weights and of the rows.
#[inline(always)]
pub(super) fn add_block<V: Lanes, const M: usize>(
    sums: &mut [V; M],
    dots: &[V::Ints; M],
    steps: &[u16; LANES],
    x: &[Span; M],
    block: usize,
) {
    let scales = V::load_bf16(steps);
    for m in 0..M {
        let scale = scales.mul(V::splat(x[m].scales[block]));
        sums[m] = V::from_ints(dots[m]).mul_add(scale, sums[m]);
    }
}
