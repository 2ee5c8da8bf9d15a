//! Products with weights in ggml's block-quantised types: one kernel for all of them.
//!
//! Codes are multiplied by the quantised rows. The zero-point correction, the zero point times the sum of the
//! row's values, is the initial value of a group's sum. In types whose groups have integer scales, the sums
//! are scaled and added as integers too, so that 256 columns are one step of an output's chain,
//! `sum = (step · d) · dot + sum`, plus one for the minimums. In the other types each group of 32 columns is
//! such a step, plus one for the offset, `sum = offset · (d · sum of the row's values) + sum`.
//!
//! With AVX-512, codes are unpacked again for each 8 rows, whatever their number: expanding those of 256
//! columns first, as [`panels`](super::panels) does, was slower or level on a Zen 4. Paths with registers for
//! 4 rows only [expand them](multiply_expanded) for 8 rows and more. A matrix unit has
//! [panels](super::block_tiles) for more than 32 rows.

#![allow(clippy::needless_range_loop, reason = "see `integer`")]

use std::ops::Range;

use super::super::lanes::{Aligned, Kernel, LANES, Lanes, Line};
use super::super::pack::{BlockFormat, EXPANDED_LINES, GROUP, RECORD, Record, RecordTile, Scales};
use super::activations::{QuantizedRows, Span};
use super::codes::{Codes, Expanded, Stored, expand, lines_of_codes, prefetch_lines};

/// Columns per sum of the row's integers.
const SUMMED: usize = 16;

/// Minimum of rows for which the codes of 256 columns are expanded to bytes first.
const EXPANDED_ROWS: usize = 8;

/// Multiplies `rows` by two tiles; `out` is `[rows, 2, 16]`.
pub(super) struct Products<'a, F: BlockFormat> {
    pub tiles: [RecordTile<'a, F>; 2],
    pub x: &'a QuantizedRows,
    pub rows: Range<usize>,
    pub out: &'a mut [[[f32; LANES]; 2]],
}

impl<F: BlockFormat> Kernel for Products<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let Self { tiles, x, rows, out } = self;
        if V::IN_REGISTERS && !V::MANY_REGISTERS && rows.len() >= EXPANDED_ROWS {
            return multiply_expanded::<V, F>(tiles, x, rows, out);
        }
        for t in 0..2 {
            multiply::<V, F>(tiles[t], x, rows.clone(), t, out);
        }
    }
}

/// Multiplies rows by tile `t` of the two.
#[inline(always)]
fn multiply<V: Lanes, F: BlockFormat>(
    tile: RecordTile<'_, F>,
    x: &QuantizedRows,
    rows: Range<usize>,
    t: usize,
    out: &mut [[[f32; LANES]; 2]],
) {
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

/// Multiplies `M` rows by a tile and returns `M`.
#[inline(always)]
fn few<V: Lanes, F: BlockFormat, const M: usize>(
    tile: RecordTile<'_, F>,
    x: &QuantizedRows,
    row: usize,
    t: usize,
    out: &mut [[[f32; LANES]; 2]],
) -> usize {
    let mut sums = [V::splat(0.0); M];
    for (span, record) in tile.records().enumerate() {
        prefetch_lines::<M>(record.scale_lines());
        let x = x.spans(span, row);
        add::<V, F, Stored, M>(&mut sums, record.scales, record.lines, x);
    }
    for m in 0..M {
        sums[m].store(&mut out[m][t]);
    }
    M
}

/// Multiplies rows by two tiles, record by record: the codes are expanded to bytes in the L1 cache, 8 KiB,
/// and all rows are multiplied by them. The outputs' chains are kept in memory in between.
#[inline(always)]
fn multiply_expanded<V: Lanes, F: BlockFormat>(
    tiles: [RecordTile<'_, F>; 2],
    x: &QuantizedRows,
    rows: Range<usize>,
    out: &mut [[[f32; LANES]; 2]],
) {
    out.fill([[0.0; LANES]; 2]);
    let mut rooms = [Aligned([[0; size_of::<Line>()]; RECORD / 4]); 2];
    for (span, (a, b)) in tiles[0].records().zip(tiles[1].records()).enumerate() {
        let [room_a, room_b] = &mut rooms;
        let codes = [
            expand::<V, F, EXPANDED_ROWS>(&a, &mut room_a.0),
            expand::<V, F, EXPANDED_ROWS>(&b, &mut room_b.0),
        ];
        let (fours, rest) = out.as_chunks_mut::<4>();
        for (index, out) in fours.iter_mut().enumerate() {
            add_expanded::<V, F, 4>([&a, &b], codes, x.spans(span, rows.start + 4 * index), out);
        }
        let first = rows.end - rest.len();
        for (index, out) in rest.iter_mut().enumerate() {
            let x = x.spans(span, first + index);
            add_expanded::<V, F, 1>([&a, &b], codes, x, std::array::from_mut(out));
        }
    }
}

/// Adds the steps of the outputs' chains of `M` rows for two records with expanded codes.
#[inline(always)]
fn add_expanded<V: Lanes, F: BlockFormat, const M: usize>(
    records: [&Record<'_, F>; 2],
    codes: [&[Line]; 2],
    x: &[Span; M],
    out: &mut [[[f32; LANES]; 2]; M],
) {
    for t in 0..2 {
        let mut sums = [V::splat(0.0); M];
        for m in 0..M {
            sums[m] = V::load(&out[m][t]);
        }
        add::<V, F, Expanded, M>(&mut sums, records[t].scales, codes[t], x);
        for m in 0..M {
            sums[m].store(&mut out[m][t]);
        }
    }
}

/// Adds the steps of the outputs' chains for a record.
#[inline(always)]
fn add<V: Lanes, F: BlockFormat, C: Codes, const M: usize>(
    sums: &mut [V; M],
    scales: &F::Scales,
    lines: &[Line],
    x: &[Span; M],
) {
    if scales.factors::<V>(0).is_some() {
        add_integers::<V, F, C, M>(sums, scales, lines, x);
    } else {
        add_floats::<V, F, C, M>(sums, scales, lines, x);
    }
}

/// Adds the steps of the outputs' chains for a record, one for each group, which has a scale of the rows.
#[inline(always)]
fn add_floats<V: Lanes, F: BlockFormat, C: Codes, const M: usize>(
    sums: &mut [V; M],
    scales: &F::Scales,
    lines: &[Line],
    x: &[Span; M],
) {
    for (group, lines) in lines.chunks_exact(C::lines::<F>()).enumerate().take(RECORD / GROUP) {
        C::prefetch::<M>(lines);
        let dots = dots::<V, F, C, M>(lines, group, 0..EXPANDED_LINES, x);
        add_group::<V, F, M>(sums, &dots, scales, group, x);
    }
}

/// Adds the step of the outputs' chains for a group with a float scale, whose dot products are `dots`.
#[inline(always)]
pub(super) fn add_group<V: Lanes, F: BlockFormat, const M: usize>(
    sums: &mut [V; M],
    dots: &[V::Ints; M],
    scales: &F::Scales,
    group: usize,
    x: &[Span; M],
) {
    let (step, offset) = (scales.step::<V>(group), scales.offset::<V>(group));
    for m in 0..M {
        let scale = step.mul(V::splat(x[m].scales[group]));
        sums[m] = V::from_ints(dots[m]).mul_add(scale, sums[m]);
        if let Some(offset) = offset {
            sums[m] = offset.mul_add(V::splat(x[m].scaled_sums[group]), sums[m]);
        }
    }
}

/// Adds the steps of the outputs' chains for a record whose groups have integer scales.
#[inline(always)]
fn add_integers<V: Lanes, F: BlockFormat, C: Codes, const M: usize>(
    sums: &mut [V; M],
    scales: &F::Scales,
    lines: &[Line],
    x: &[Span; M],
) {
    let columns = F::Scales::COLUMNS;
    let mut totals = [V::splat_int(0); M];
    // Groups in fours: each lane's four bytes hold four integer scales.
    for quad in 0..RECORD / columns / 4 {
        let Some(mut factors) = scales.factors::<V>(quad) else { return };
        for part in 0..4 {
            let column = (4 * quad + part) * columns;
            let group = column / GROUP;
            let first = column % GROUP / 4;
            let lines = &lines[group * C::lines::<F>()..(group + 1) * C::lines::<F>()];
            if first == 0 {
                C::prefetch::<M>(lines);
            }
            let dots = dots::<V, F, C, M>(lines, group, first..first + columns / 4, x);
            let factor = V::first_bytes(factors);
            factors = V::next_bytes(factors);
            for m in 0..M {
                totals[m] = V::add_products(totals[m], dots[m], factor);
            }
        }
    }
    add_record::<V, F, M>(sums, &totals, scales, x);
}

/// Adds the step of the outputs' chains for a record whose groups have integer scales, given the scaled sums,
/// and the step of its minimums.
#[inline(always)]
pub(super) fn add_record<V: Lanes, F: BlockFormat, const M: usize>(
    sums: &mut [V; M],
    totals: &[V::Ints; M],
    scales: &F::Scales,
    x: &[Span; M],
) {
    let columns = F::Scales::COLUMNS;
    let step = scales.step::<V>(0);
    for m in 0..M {
        let scale = step.mul(V::splat(x[m].scales[0]));
        sums[m] = V::from_ints(totals[m]).mul_add(scale, sums[m]);
    }
    let Some(offset) = scales.offset::<V>(0) else { return };
    let mut group_sums = [[[0; 2]; RECORD / SUMMED / 2]; M];
    for m in 0..M {
        group_sums[m] = sums_of_groups::<F>(&x[m]);
    }
    let mut totals = [V::splat_int(0); M];
    for quad in 0..RECORD / columns / 4 {
        let Some(mins) = scales.mins::<V>(quad) else { continue };
        let mins = [V::pair(mins, [0, 1]), V::pair(mins, [2, 3])];
        for m in 0..M {
            totals[m] = V::dot_pairs(totals[m], mins[0], group_sums[m][2 * quad]);
            totals[m] = V::dot_pairs(totals[m], mins[1], group_sums[m][2 * quad + 1]);
        }
    }
    for m in 0..M {
        let scale = offset.mul(V::splat(x[m].scales[0]));
        sums[m] = V::from_ints(totals[m]).mul_add(scale, sums[m]);
    }
}

/// Sums of a row's integers over the groups, in pairs.
#[inline(always)]
fn sums_of_groups<F: BlockFormat>(x: &Span) -> [[i16; 2]; RECORD / SUMMED / 2] {
    let mut sums = x.sums;
    if F::Scales::COLUMNS == GROUP {
        for group in 0..RECORD / GROUP {
            sums[group] = x.sums[2 * group] + x.sums[2 * group + 1];
        }
    }
    bytemuck::cast(sums)
}

/// `Σ quant · x` over the columns of a range of four columns each of a group.
#[inline(always)]
fn dots<V: Lanes, F: BlockFormat, C: Codes, const M: usize>(
    lines: &[Line],
    group: usize,
    range: Range<usize>,
    x: &[Span; M],
) -> [V::Ints; M] {
    let mut dots = zero_points::<V, F, M>(group, &range, x);
    let quad = |m: usize, j: usize| x[m].quads[group * EXPANDED_LINES + j];
    if F::ZERO == 128 {
        for j in range {
            let codes = C::load::<V, F>(lines, j);
            for m in 0..M {
                dots[m] = V::dot_bytes(dots[m], codes, V::quad(quad(m, j)));
            }
        }
        return dots;
    }
    let run = const { lines_of_codes::<F>() };
    for first in range.clone().step_by(run) {
        let mut sums = [V::start_codes(dots[0]); M];
        for m in 1..M {
            sums[m] = V::start_codes(dots[m]);
        }
        for j in first..range.end.min(first + run) {
            let codes = C::load::<V, F>(lines, j);
            for m in 0..M {
                sums[m] = V::dot_codes(sums[m], codes, V::quad(quad(m, j)));
            }
        }
        for m in 0..M {
            dots[m] = V::end_codes(dots[m], sums[m]);
        }
    }
    dots
}

/// Zero-point corrections of the columns of a range of a group: initial values of their sums.
#[inline(always)]
fn zero_points<V: Lanes, F: BlockFormat, const M: usize>(
    group: usize,
    range: &Range<usize>,
    x: &[Span; M],
) -> [V::Ints; M] {
    let mut starts = [V::splat_int(0); M];
    if F::ZERO == 0 {
        return starts;
    }
    // Only the halves of the group within the range get their correction.
    let half = |half: usize| if range.contains(&(4 * half)) { -i16::from(F::ZERO) } else { 0 };
    let parts = V::splat_pair([half(0), half(1)]);
    for m in 0..M {
        let sums = [x[m].sums[2 * group], x[m].sums[2 * group + 1]];
        starts[m] = if F::ZERO == 128 {
            V::start_bytes_of(parts, sums)
        } else {
            V::dot_pairs(V::splat_int(0), parts, sums)
        };
    }
    starts
}
