//! Products of few rows with weights in the integer formats.
//!
//! Everything between two scales is an integer sum, exact in any order. The float work of an output is one
//! chain over the blocks, in order: `sum = (scale of the weights · scale of the row) · dot + sum`, rounded
//! after the product of the scales and at the end. The kernels for few rows and for [many](super::panels) are
//! therefore bit-identical.

// Loops over registers are plain indexed loops: closures are compiled with the target features of their
// caller only if the compiler happens to inline them.
#![allow(clippy::needless_range_loop)]

use std::ops::Range;

use super::super::lanes::{LANES, Lanes, Line};
use super::super::pack::{IntegerLayout, Tile};
use super::activations::{QuantizedRows, Span};

/// Kernel operations of an integer format.
pub(super) trait IntegerWeights: IntegerLayout {
    /// Lines per block, expanded to unsigned bytes, four columns each.
    const BLOCK_LINES: usize = Self::BLOCK / 4;
    /// Maximum rows for which unpacking the quants anew for each 8 rows is faster than panels without a
    /// matrix unit.
    const FEW_ROWS: usize;

    /// Multiplies `M` rows from `row` on by a tile.
    fn multiply<V: Lanes, const M: usize>(tile: &Tile<'_, Self>, x: &QuantizedRows, row: usize) -> [V; M];

    /// Expands 256 columns to bytes: quant times the integer scale of its group, plus 128. The number of
    /// lines is padded to a multiple of 16 with arbitrary contents, since the rows are zero there. `room` is
    /// the buffer for lines that are computed.
    fn bytes<'a>(tile: &Tile<'a, Self>, span: usize, room: &'a mut [Line; SPAN_LINES]) -> &'a [Line];
}

/// Lines of 256 columns expanded to unsigned bytes.
pub(super) const SPAN_LINES: usize = super::activations::SPAN / 4;

/// Multiplies the rows `rows` by two tiles, with the quants unpacked on the fly; `out` is `[rows, 2, 16]`.
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
                _ if !V::IN_REGISTERS => few::<V, F, 1>(tile, x, row, t, out),
                1 => few::<V, F, 1>(tile, x, row, t, out),
                2..4 => few::<V, F, 2>(tile, x, row, t, out),
                8.. if V::MANY_REGISTERS => few::<V, F, 8>(tile, x, row, t, out),
                _ => few::<V, F, 4>(tile, x, row, t, out),
            };
        }
    }
}

/// Multiplies `M` rows by tile `t` of the two and returns `M`.
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

/// Adds one step of the outputs' chains: the dot products of a block, times the scales of the weights and
/// of the rows.
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
