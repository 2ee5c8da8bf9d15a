//! Products with weights in the integer formats.
//!
//! All between two scales is a sum of integers, exact in any order. The float work of an output is one chain over the blocks,
//! in order: `sum = (scale of the weights · scale of the row) · dot + sum`, rounded after the product of the scales and at the
//! end. The kernels for few rows and for many therefore give the same bits.

use super::super::lanes::{LANES, Lanes, Line, prefetch};
use super::super::pack::{GROUP, IntegerLayout, Q4, Q8, Tile};
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
    fn panel<'a, V: Lanes>(
        tile: &Tile<'a, Self>,
        blocks: std::ops::Range<usize>,
        panel: &'a mut [Line],
    ) -> &'a [Line];
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
        let lines = tiles.each_ref().map(|tile| &tile.lines[groups.start * 8..groups.end * 8]);
        let mut sums =
            std::array::from_fn(|m| offsets::<V, T>(Self::OFFSET, x.sums(row + m, groups.clone())));
        let quads: [_; M] = std::array::from_fn(|m| x.quads(row + m, groups.clone()));
        for j in 0..lines[0].len() {
            for t in 0..T {
                prefetch(&lines[t][j], AHEAD);
                let w = V::load_bytes(&lines[t][j]);
                for m in 0..M {
                    sums[m][t] = V::dot_bytes(sums[m][t], w, V::quad(quads[m][j]));
                }
            }
        }
        sums
    }

    #[inline(always)]
    fn panel<'a, V: Lanes>(
        tile: &Tile<'a, Self>,
        blocks: std::ops::Range<usize>,
        _: &'a mut [Line],
    ) -> &'a [Line] {
        &tile.lines[tile.groups_of(blocks.start).start * 8..tile.groups_of(blocks.end - 1).end * 8]
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
        for (pair, first) in groups.clone().step_by(2).enumerate() {
            let factors = tiles.each_ref().map(|tile| {
                let scales = &tile.scales[block];
                V::factors(&scales.magnitudes[pair], [scales.signs[2 * pair], scales.signs[2 * pair + 1]])
            });
            for (half, group) in (first..groups.end.min(first + 2)).enumerate() {
                let products = group_dots::<V, M, T>(tiles, group, x, row);
                for m in 0..M {
                    for t in 0..T {
                        sums[m][t] = V::add_scaled(sums[m][t], products[m][t], factors[t][half]);
                    }
                }
            }
        }
        sums
    }

    #[inline(always)]
    fn panel<'a, V: Lanes>(
        tile: &Tile<'a, Self>,
        blocks: std::ops::Range<usize>,
        panel: &'a mut [Line],
    ) -> &'a [Line] {
        let mut used = 0;
        for block in blocks {
            let (scales, groups) = (&tile.scales[block], tile.groups_of(block));
            for (pair, first) in groups.clone().step_by(2).enumerate() {
                let signs = [scales.signs[2 * pair], scales.signs[2 * pair + 1]];
                let factors = V::factors(&scales.magnitudes[pair], signs);
                for (factor, group) in factors.into_iter().zip(first..groups.end) {
                    let (low, high) = panel[used..used + 8].split_at_mut(4);
                    for ((line, low), high) in tile.lines[group * 4..group * 4 + 4].iter().zip(low).zip(high)
                    {
                        let quants = V::load_nibbles(line);
                        V::store_bytes(V::scale_nibbles(quants[0], factor), low);
                        V::store_bytes(V::scale_nibbles(quants[1], factor), high);
                    }
                    used += 8;
                }
            }
        }
        &panel[..used]
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
    let lines = tiles.each_ref().map(|tile| &tile.lines[group * 4..group * 4 + 4]);
    let mut sums = std::array::from_fn(|m| offsets::<V, T>(8, x.sums(row + m, group..group + 1)));
    let quads: [_; M] = std::array::from_fn(|m| x.quads(row + m, group..group + 1));
    for j in 0..4 {
        for t in 0..T {
            prefetch(&lines[t][j], AHEAD);
            let [low, high] = V::load_nibbles(&lines[t][j]);
            for m in 0..M {
                let sum = V::dot_nibbles(sums[m][t], low, V::quad(quads[m][j]));
                sums[m][t] = V::dot_nibbles(sum, high, V::quad(quads[m][4 + j]));
            }
        }
    }
    sums
}

/// What sums begin at so that the offset of the quants is taken off again.
#[inline(always)]
fn offsets<V: Lanes, const T: usize>(offset: i32, sums: &[i32]) -> [V::Ints; T] {
    [V::splat_int(-offset * sums.iter().sum::<i32>()); T]
}

/// Products of the rows `rows` with two tiles; `out` is `[rows, 2, 16]`.
#[inline(always)]
pub(super) fn multiply<V: Lanes, F: IntegerWeights>(
    tiles: &[Tile<'_, F>; 2],
    x: &QuantizedRows,
    rows: std::ops::Range<usize>,
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
        let scales = tiles.each_ref().map(|tile| V::load_f16(F::halves(&tile.scales[block])));
        for m in 0..M {
            let scale = V::splat(x.scale(row + m, block));
            for t in 0..T {
                sums[m][t] = V::from_ints(dots[m][t]).mul_add(scales[t].mul(scale), sums[m][t]);
            }
        }
    }
    sums
}

/// Many rows: a panel of columns after the other, all rows on each.
#[inline(always)]
fn multiply_panels<V: Lanes, F: IntegerWeights>(
    tiles: &[Tile<'_, F>; 2],
    x: &QuantizedRows,
    rows: std::ops::Range<usize>,
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
        for (out, row) in out.chunks_mut(PANEL_ROWS).zip(rows.clone().step_by(PANEL_ROWS)) {
            match out.len() {
                1 => add_panel::<V, F, 1>(tiles, panels, blocks.clone(), x, row, out),
                2 => add_panel::<V, F, 2>(tiles, panels, blocks.clone(), x, row, out),
                3 => add_panel::<V, F, 3>(tiles, panels, blocks.clone(), x, row, out),
                _ => add_panel::<V, F, 4>(tiles, panels, blocks.clone(), x, row, out),
            }
        }
    }
}

/// Adds the products of `M` rows with the blocks of a panel.
#[inline(always)]
fn add_panel<V: Lanes, F: IntegerWeights, const M: usize>(
    tiles: &[Tile<'_, F>; 2],
    panels: [&[Line]; 2],
    blocks: std::ops::Range<usize>,
    x: &QuantizedRows,
    row: usize,
    out: &mut [[[f32; LANES]; 2]],
) {
    let mut sums: [[V; 2]; M] = std::array::from_fn(|m| out[m].each_ref().map(V::load));
    let start = tiles[0].groups_of(blocks.start).start;
    for block in blocks {
        let groups = tiles[0].groups_of(block);
        let lines = panels.map(|panel| &panel[(groups.start - start) * 8..(groups.end - start) * 8]);
        let quads: [&[[i8; 4]]; M] = std::array::from_fn(|m| x.quads(row + m, groups.clone()));
        let mut dots: [[V::Ints; 2]; M] =
            std::array::from_fn(|m| offsets::<V, 2>(F::OFFSET, x.sums(row + m, groups.clone())));
        for j in 0..(groups.end - groups.start) * (GROUP / 4) {
            let w = lines.map(|lines| V::load_bytes(&lines[j]));
            for m in 0..M {
                let quad = V::quad(quads[m][j]);
                dots[m] = [V::dot_bytes(dots[m][0], w[0], quad), V::dot_bytes(dots[m][1], w[1], quad)];
            }
        }
        let scales = tiles.each_ref().map(|tile| V::load_f16(F::halves(&tile.scales[block])));
        for m in 0..M {
            let scale = V::splat(x.scale(row + m, block));
            for t in 0..2 {
                sums[m][t] = V::from_ints(dots[m][t]).mul_add(scales[t].mul(scale), sums[m][t]);
            }
        }
    }
    for (out, sums) in out.iter_mut().zip(sums) {
        sums[0].store(&mut out[0]);
        sums[1].store(&mut out[1]);
    }
}
