//! Products with weights in the integer formats.
//!
//! All between two scales is a sum of integers, exact in any order. The float work of an output is one chain over the blocks,
//! in order: `sum = (scale of the weights · scale of the row) · dot + sum`, rounded after the product of the scales and at the
//! end. The kernels for few rows and for many therefore give the same bits.

// Loops over registers are plain loops with indices: closures are not compiled for the features of their caller unless the
// compiler happens to inline them.
#![allow(clippy::needless_range_loop)]

use std::ops::Range;

use super::super::lanes::{LANES, Lanes, Line, prefetch};
use super::super::matrix_unit::{MatrixUnit, Products, SIDE};
use super::super::pack::{IntegerLayout, Q4, Q8, Tile};
use super::activations::QuantizedRows;

/// Rows up to which the quants are used as they are stored; more rows share a panel of expanded ones.
const FEW_ROWS: usize = 8;
/// Rows that share the registers of the kernel for few rows.
const ROWS: usize = 4;
/// Rows that share the registers of the kernel for many rows.
const PANEL_ROWS: usize = 4;
/// Columns of a panel, which stays in the first-level cache: 16 KiB for two tiles.
const PANEL_COLUMNS: usize = 512;
/// Lines of a panel of one tile: four columns each.
const PANEL_LINES: usize = PANEL_COLUMNS / 4;
/// How far ahead of their use few rows' quants are asked for, in bytes.
const AHEAD: usize = 4096;

/// What the kernels need of an integer format.
pub(super) trait IntegerWeights: IntegerLayout {
    /// What is added to a quant, or to its product with the group's factor, to make an unsigned byte.
    const OFFSET: i32;
    /// The dot products of `M` rows from `row` on with a block of each tile.
    fn dots<V: Lanes, const M: usize, const T: usize>(
        tiles: &[Tile<'_, Self>; T],
        block: usize,
        x: &QuantizedRows,
        row: usize,
    ) -> [[V::Ints; T]; M];
    /// The lines of some blocks as unsigned bytes, four columns a line; `panel` is room for them.
    fn panel<'a, V: Lanes>(tile: &Tile<'a, Self>, blocks: Range<usize>, panel: &'a mut [Line]) -> &'a [Line];
}

impl IntegerWeights for Q8 {
    const OFFSET: i32 = 128;

    #[inline(always)]
    fn dots<V: Lanes, const M: usize, const T: usize>(
        tiles: &[Tile<'_, Self>; T],
        block: usize,
        x: &QuantizedRows,
        row: usize,
    ) -> [[V::Ints; T]; M] {
        let groups = tiles[0].groups_of(block);
        let quads = quads::<M>(x, row, groups.clone());
        let mut sums = offsets::<V, M, T>(Self::OFFSET, x, row, groups.clone());
        for j in 0..(groups.end - groups.start) * Self::GROUP_LINES {
            for t in 0..T {
                let line = &tiles[t].lines[groups.start * Self::GROUP_LINES + j];
                prefetch(line, AHEAD);
                let w = V::load_bytes(line);
                for m in 0..M {
                    sums[m][t] = V::dot_bytes(sums[m][t], w, V::quad(quads[m][j]));
                }
            }
        }
        sums
    }

    #[inline(always)]
    fn panel<'a, V: Lanes>(tile: &Tile<'a, Self>, blocks: Range<usize>, _: &'a mut [Line]) -> &'a [Line] {
        let (start, end) = (tile.groups_of(blocks.start).start, tile.groups_of(blocks.end - 1).end);
        &tile.lines[start * Self::GROUP_LINES..end * Self::GROUP_LINES]
    }
}

impl IntegerWeights for Q4 {
    /// The product of a quant and a factor is at least -120.
    const OFFSET: i32 = 128;

    /// A group's sum is at most 32 · 8 · 127 in magnitude, which fits into 16 bits, before it is multiplied with the factor.
    #[inline(always)]
    fn dots<V: Lanes, const M: usize, const T: usize>(
        tiles: &[Tile<'_, Self>; T],
        block: usize,
        x: &QuantizedRows,
        row: usize,
    ) -> [[V::Ints; T]; M] {
        let groups = tiles[0].groups_of(block);
        let mut sums = [[V::splat_int(0); T]; M];
        for first in groups.clone().step_by(2) {
            let mut factors = [factors_of::<V>(&tiles[0], block, first - groups.start); T];
            for t in 1..T {
                factors[t] = factors_of::<V>(&tiles[t], block, first - groups.start);
            }
            for group in first..groups.end.min(first + 2) {
                let products = group_dots::<V, M, T>(tiles, group, x, row);
                for m in 0..M {
                    for t in 0..T {
                        sums[m][t] = V::add_scaled(sums[m][t], products[m][t], factors[t][group - first]);
                    }
                }
            }
        }
        sums
    }

    #[inline(always)]
    fn panel<'a, V: Lanes>(tile: &Tile<'a, Self>, blocks: Range<usize>, panel: &'a mut [Line]) -> &'a [Line] {
        let mut used = 0;
        for block in blocks {
            let groups = tile.groups_of(block);
            for first in groups.clone().step_by(2) {
                let factors = factors_of::<V>(tile, block, first - groups.start);
                for group in first..groups.end.min(first + 2) {
                    expand_group::<V>(tile, group, factors[group - first], &mut panel[used..used + 8]);
                    used += 8;
                }
            }
        }
        &panel[..used]
    }
}

/// The factors of two groups of a block.
#[inline(always)]
fn factors_of<V: Lanes>(tile: &Tile<'_, Q4>, block: usize, group: usize) -> [V::Factors; 2] {
    let scales = &tile.scales[block];
    V::factors(&scales.magnitudes[group / 2], [scales.signs[group], scales.signs[group + 1]])
}

/// The products of a group's quants with their factor, plus 128.
#[inline(always)]
fn expand_group<V: Lanes>(tile: &Tile<'_, Q4>, group: usize, factors: V::Factors, panel: &mut [Line]) {
    for j in 0..4 {
        let [low, high] = V::load_nibbles(&tile.lines[group * 4 + j]);
        V::store_bytes(V::scale_nibbles(low, factors), &mut panel[j]);
        V::store_bytes(V::scale_nibbles(high, factors), &mut panel[4 + j]);
    }
}

/// The dot products of a group's quants, without its factor.
#[inline(always)]
fn group_dots<V: Lanes, const M: usize, const T: usize>(
    tiles: &[Tile<'_, Q4>; T],
    group: usize,
    x: &QuantizedRows,
    row: usize,
) -> [[V::Ints; T]; M] {
    let quads = quads::<M>(x, row, group..group + 1);
    let mut sums = offsets::<V, M, T>(8, x, row, group..group + 1);
    for j in 0..4 {
        for t in 0..T {
            let line = &tiles[t].lines[group * 4 + j];
            prefetch(line, AHEAD);
            let [low, high] = V::load_nibbles(line);
            for m in 0..M {
                let sum = V::dot_nibbles(sums[m][t], low, V::quad(quads[m][j]));
                sums[m][t] = V::dot_nibbles(sum, high, V::quad(quads[m][4 + j]));
            }
        }
    }
    sums
}

/// The activations of `M` rows in some groups, four columns each.
#[inline(always)]
fn quads<const M: usize>(x: &QuantizedRows, row: usize, groups: Range<usize>) -> [&[[i8; 4]]; M] {
    let mut quads: [&[[i8; 4]]; M] = [&[]; M];
    for m in 0..M {
        quads[m] = x.quads(row + m, groups.clone());
    }
    quads
}

/// What sums begin at so that the offset of the quants is taken off again.
#[inline(always)]
fn offsets<V: Lanes, const M: usize, const T: usize>(
    offset: i32,
    x: &QuantizedRows,
    row: usize,
    groups: Range<usize>,
) -> [[V::Ints; T]; M] {
    let mut offsets = [[V::splat_int(0); T]; M];
    for m in 0..M {
        let mut sum = 0;
        for group_sum in x.sums(row + m, groups.clone()) {
            sum += group_sum;
        }
        offsets[m] = [V::splat_int(-offset * sum); T];
    }
    offsets
}

/// Products of the rows `rows` with two tiles; `out` is `[rows, 2, 16]`.
#[inline(always)]
pub(super) fn multiply<V: Lanes, F: IntegerWeights>(
    tiles: &[Tile<'_, F>; 2],
    x: &QuantizedRows,
    rows: Range<usize>,
    out: &mut [[[f32; LANES]; 2]],
) {
    if rows.len() > FEW_ROWS {
        return multiply_panels::<V, F>(tiles, x, rows, out);
    }
    for (out, row) in out.chunks_mut(ROWS).zip(rows.step_by(ROWS)) {
        match out.len() {
            1 => few::<V, F, 1>(tiles, x, row, out),
            2 => few::<V, F, 2>(tiles, x, row, out),
            3 => few::<V, F, 3>(tiles, x, row, out),
            _ => few::<V, F, 4>(tiles, x, row, out),
        }
    }
}

/// `M` rows with two tiles: one after the other for a single row, which keeps to one stream of memory, and together for more,
/// which share what is loaded of the activations.
#[inline(always)]
fn few<V: Lanes, F: IntegerWeights, const M: usize>(
    tiles: &[Tile<'_, F>; 2],
    x: &QuantizedRows,
    row: usize,
    out: &mut [[[f32; LANES]; 2]],
) {
    if M == 1 {
        for (t, tile) in tiles.iter().enumerate() {
            let [[sum]] = sums::<V, F, 1, 1>(&[*tile], x, row);
            sum.store(&mut out[0][t]);
        }
        return;
    }
    for (out, sums) in out.iter_mut().zip(sums::<V, F, M, 2>(tiles, x, row)) {
        for (out, sum) in out.iter_mut().zip(sums) {
            sum.store(out);
        }
    }
}

#[inline(always)]
fn sums<V: Lanes, F: IntegerWeights, const M: usize, const T: usize>(
    tiles: &[Tile<'_, F>; T],
    x: &QuantizedRows,
    row: usize,
) -> [[V; T]; M] {
    let mut sums = [[V::splat(0.0); T]; M];
    for block in 0..tiles[0].scales.len() {
        let dots = F::dots::<V, M, T>(tiles, block, x, row);
        add_block::<V, F, M, T>(tiles, block, x, row, &dots, &mut sums);
    }
    sums
}

/// Many rows: a panel of columns after the other, all rows on each.
#[inline(always)]
fn multiply_panels<V: Lanes, F: IntegerWeights>(
    tiles: &[Tile<'_, F>; 2],
    x: &QuantizedRows,
    rows: Range<usize>,
    out: &mut [[[f32; LANES]; 2]],
) {
    out.fill([[0.0; LANES]; 2]);
    let mut room = [[[0; size_of::<Line>()]; PANEL_LINES]; 2];
    let blocks = tiles[0].scales.len();
    for first in (0..blocks).step_by(PANEL_COLUMNS / F::BLOCK) {
        let blocks = first..blocks.min(first + PANEL_COLUMNS / F::BLOCK);
        let [room_a, room_b] = &mut room;
        let panels = [
            F::panel::<V>(&tiles[0], blocks.clone(), room_a),
            F::panel::<V>(&tiles[1], blocks.clone(), room_b),
        ];
        if V::Unit::PRESENT {
            add_panel_by_tiles::<V, F>(tiles, panels, blocks, x, rows.clone(), out);
        } else {
            add_panel_by_rows::<V, F>(tiles, panels, blocks, x, rows.clone(), out);
        }
    }
}

/// Adds the products of the rows with the blocks of a panel, [`PANEL_ROWS`] rows at a time.
#[inline(always)]
fn add_panel_by_rows<V: Lanes, F: IntegerWeights>(
    tiles: &[Tile<'_, F>; 2],
    panels: [&[Line]; 2],
    blocks: Range<usize>,
    x: &QuantizedRows,
    rows: Range<usize>,
    out: &mut [[[f32; LANES]; 2]],
) {
    for (out, row) in out.chunks_mut(PANEL_ROWS).zip(rows.step_by(PANEL_ROWS)) {
        match out.len() {
            1 => add_panel::<V, F, 1>(tiles, panels, blocks.clone(), x, row, out),
            2 => add_panel::<V, F, 2>(tiles, panels, blocks.clone(), x, row, out),
            3 => add_panel::<V, F, 3>(tiles, panels, blocks.clone(), x, row, out),
            _ => add_panel::<V, F, 4>(tiles, panels, blocks.clone(), x, row, out),
        }
    }
}

/// Adds the products of the rows with the blocks of a panel, by the matrix unit. A last block with an odd number of groups,
/// which is no whole number of the unit's steps, goes by rows.
#[inline(always)]
fn add_panel_by_tiles<V: Lanes, F: IntegerWeights>(
    tiles: &[Tile<'_, F>; 2],
    panels: [&[Line]; 2],
    blocks: Range<usize>,
    x: &QuantizedRows,
    rows: Range<usize>,
    out: &mut [[[f32; LANES]; 2]],
) {
    let start = tiles[0].groups_of(blocks.start).start;
    let mut products = [[0; SIDE]; SIDE];
    V::Unit::configure();
    for block in blocks {
        let groups = tiles[0].groups_of(block);
        let lines = (groups.start - start) * 8..(groups.end - start) * 8;
        let panels = [&panels[0][lines.clone()], &panels[1][lines]];
        if !groups.len().is_multiple_of(2) {
            add_panel_by_rows::<V, F>(tiles, panels, block..block + 1, x, rows.clone(), out);
            continue;
        }
        for (out, row) in out.chunks_mut(SIDE).zip(rows.clone().step_by(SIDE)) {
            let (values, stride) = x.tile(row, groups.start);
            let weights = [panels[0].as_ptr().cast(), panels[1].as_ptr().cast()];
            // SAFETY: `tile` has checked that there are as many rows, and they have the columns of the block; each panel has
            // 16 lines, 1,024 bytes, for two groups, which are the columns of a step.
            unsafe { V::Unit::multiply(values, stride, weights, groups.len() / 2, &mut products) };
            add_products::<V, F>(tiles, block, x, row, &mut products, out);
        }
    }
    V::Unit::release();
}

/// One step of the outputs' chains by the products of a matrix unit.
#[inline(always)]
fn add_products<V: Lanes, F: IntegerWeights>(
    tiles: &[Tile<'_, F>; 2],
    block: usize,
    x: &QuantizedRows,
    row: usize,
    products: &mut Products,
    out: &mut [[[f32; LANES]; 2]],
) {
    let groups = tiles[0].groups_of(block);
    for m in 0..out.len() {
        let mut sum = 0;
        for group_sum in x.sums(row + m, groups.clone()) {
            sum += group_sum;
        }
        for product in &mut products[m] {
            *product -= F::OFFSET * sum;
        }
        let (halves, _) = products[m].as_chunks();
        let dots = [[V::load_ints(&halves[0]), V::load_ints(&halves[1])]];
        let mut sums = [[V::load(&out[m][0]), V::load(&out[m][1])]];
        add_block::<V, F, 1, 2>(tiles, block, x, row + m, &dots, &mut sums);
        sums[0][0].store(&mut out[m][0]);
        sums[0][1].store(&mut out[m][1]);
    }
}

/// Adds the products of `M` rows with the blocks of a panel.
#[inline(always)]
fn add_panel<V: Lanes, F: IntegerWeights, const M: usize>(
    tiles: &[Tile<'_, F>; 2],
    panels: [&[Line]; 2],
    blocks: Range<usize>,
    x: &QuantizedRows,
    row: usize,
    out: &mut [[[f32; LANES]; 2]],
) {
    let mut sums = [[V::splat(0.0); 2]; M];
    for m in 0..M {
        sums[m] = [V::load(&out[m][0]), V::load(&out[m][1])];
    }
    let start = tiles[0].groups_of(blocks.start).start;
    for block in blocks {
        let groups = tiles[0].groups_of(block);
        let quads = quads::<M>(x, row, groups.clone());
        let mut dots = offsets::<V, M, 2>(F::OFFSET, x, row, groups.clone());
        let lines = (groups.start - start) * 8..(groups.end - start) * 8;
        let (a, b) = (&panels[0][lines.clone()], &panels[1][lines]);
        for j in 0..a.len() {
            let w = [V::load_bytes(&a[j]), V::load_bytes(&b[j])];
            for m in 0..M {
                let quad = V::quad(quads[m][j]);
                dots[m] = [V::dot_bytes(dots[m][0], w[0], quad), V::dot_bytes(dots[m][1], w[1], quad)];
            }
        }
        add_block::<V, F, M, 2>(tiles, block, x, row, &dots, &mut sums);
    }
    for (out, sums) in out.iter_mut().zip(sums) {
        sums[0].store(&mut out[0]);
        sums[1].store(&mut out[1]);
    }
}

/// One step of the outputs' chains: the dot products of a block, times the scales of the weights and of the rows.
#[inline(always)]
fn add_block<V: Lanes, F: IntegerWeights, const M: usize, const T: usize>(
    tiles: &[Tile<'_, F>; T],
    block: usize,
    x: &QuantizedRows,
    row: usize,
    dots: &[[V::Ints; T]; M],
    sums: &mut [[V; T]; M],
) {
    for t in 0..T {
        let scales = V::load_bf16(F::steps(&tiles[t].scales[block]));
        for m in 0..M {
            let scale = scales.mul(V::splat(x.scale(row + m, block)));
            sums[m][t] = V::from_ints(dots[m][t]).mul_add(scale, sums[m][t]);
        }
    }
}
