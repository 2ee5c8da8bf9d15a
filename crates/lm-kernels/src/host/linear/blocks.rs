//! Products with weights in ggml's block-quantised types: one kernel for all of them.
//!
//! Codes are multiplied by the quantised rows. The zero-point correction, the zero point times the sum of the row's
//! values, is the initial value of a group's sum. In types whose groups have integer scales, the sums are scaled
//! and added as integers too, so that 256 columns are one step of an output's chain,
//! `sum = (step · d) · dot + sum`, plus one for the minimums. In the other types each 64 columns are a step.
//!
//! For [many](super::panels) rows, the codes of 256 columns are expanded first; the integer sums and the chain are
//! the same.

#![allow(clippy::needless_range_loop, reason = "see `integer`")]

use std::ops::Range;

use super::super::cpu::Kernel;
use super::super::lanes::{LANES, Lanes, Line, prefetch_stream};
use super::super::pack::{BlockFormat, EXPANDED_LINES, GROUP, RECORD, RecordTile, Scales, code};
use super::activations::{QuantizedRows, Span};
use super::integer::SPAN_LINES;
use super::multiply::FEW_ROWS;

/// Columns per sum of the row's integers.
const SUMMED: usize = 16;

/// Multiplies the rows `rows` by two tiles; `out` is `[rows, 2, 16]`.
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
        // No matrix unit multiplies these panels: the sums have to fit the registers.
        if V::PANELS && V::MANY_REGISTERS && rows.len() > FEW_ROWS {
            by_panels::<V, F>(tiles, x, rows, out);
        } else {
            for t in 0..2 {
                as_stored::<V, F>(tiles[t], x, rows.clone(), t, out);
            }
        }
    }
}

/// Multiplies rows by a tile, with the codes unpacked on the fly.
#[inline(always)]
fn as_stored<V: Lanes, F: BlockFormat>(
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
    let mut sums = [[V::splat(0.0)]; M];
    for (span, record) in tile.records().enumerate() {
        prefetch_records::<M>(record.scale_lines());
        add_record::<V, F, M, 1, false>(&mut sums, [record.scales], [record.lines], x.spans(span, row));
    }
    for m in 0..M {
        sums[m][0].store(&mut out[m][t]);
    }
    M
}

/// Multiplies rows by tiles with expanded codes, 256 columns at a time; the chains' partial sums are kept
/// in `out` in between.
#[inline(always)]
fn by_panels<V: Lanes, F: BlockFormat>(
    tiles: [RecordTile<'_, F>; 2],
    x: &QuantizedRows,
    rows: Range<usize>,
    out: &mut [[[f32; LANES]; 2]],
) {
    out.fill([[0.0; LANES]; 2]);
    let mut rooms = [[[0; size_of::<Line>()]; SPAN_LINES]; 2];
    for (span, (a, b)) in tiles[0].records().zip(tiles[1].records()).enumerate() {
        let [room_a, room_b] = &mut rooms;
        let panels = [expand::<V, F>(a.lines, room_a), expand::<V, F>(b.lines, room_b)];
        let scales = [a.scales, b.scales];
        let mut done = 0;
        while done < out.len() {
            let row = rows.start + done;
            let out = &mut out[done..];
            done += match out.len() {
                6.. => add_span::<V, F, 6>(scales, panels, x.spans(span, row), out),
                4..6 => add_span::<V, F, 4>(scales, panels, x.spans(span, row), out),
                _ => add_span::<V, F, 1>(scales, panels, x.spans(span, row), out),
            };
        }
    }
}

/// Expands the codes of up to 256 columns to bytes.
#[inline(always)]
fn expand<'a, V: Lanes, F: BlockFormat>(lines: &[Line], room: &'a mut [Line; SPAN_LINES]) -> &'a [Line] {
    let groups = (lines.len() / F::BITS).min(RECORD / GROUP);
    for group in 0..groups {
        let lines = &lines[group * F::BITS..(group + 1) * F::BITS];
        for j in 0..EXPANDED_LINES {
            V::store_bytes(code::<V, F>(lines, j), &mut room[group * EXPANDED_LINES + j]);
        }
    }
    &room[..groups * EXPANDED_LINES]
}

/// Adds the products of `M` rows with the panels and returns `M`.
#[inline(always)]
fn add_span<V: Lanes, F: BlockFormat, const M: usize>(
    scales: [&F::Scales; 2],
    panels: [&[Line]; 2],
    x: &[Span; M],
    out: &mut [[[f32; LANES]; 2]],
) -> usize {
    let mut sums = [[V::splat(0.0); 2]; M];
    for m in 0..M {
        sums[m] = [V::load(&out[m][0]), V::load(&out[m][1])];
    }
    add_record::<V, F, M, 2, true>(&mut sums, scales, panels, x);
    for m in 0..M {
        for t in 0..2 {
            sums[m][t].store(&mut out[m][t]);
        }
    }
    M
}

/// Adds the steps of the outputs' chains for a record of each of `T` tiles. `lines` has the codes, expanded
/// to bytes if `EXPANDED`.
#[inline(always)]
fn add_record<V: Lanes, F: BlockFormat, const M: usize, const T: usize, const EXPANDED: bool>(
    sums: &mut [[V; T]; M],
    scales: [&F::Scales; T],
    lines: [&[Line]; T],
    x: &[Span; M],
) {
    if scales[0].factors::<V>(0).is_some() {
        add_integers::<V, F, M, T, EXPANDED>(sums, scales, lines, x);
    } else {
        add_floats::<V, F, M, T, EXPANDED>(sums, scales, lines, x);
    }
}

/// Adds a step for each 64 columns, which share a scale of the rows.
#[inline(always)]
fn add_floats<V: Lanes, F: BlockFormat, const M: usize, const T: usize, const EXPANDED: bool>(
    sums: &mut [[V; T]; M],
    scales: [&F::Scales; T],
    lines: [&[Line]; T],
    x: &[Span; M],
) {
    let group_lines = if EXPANDED { EXPANDED_LINES } else { F::BITS };
    let groups = (lines[0].len() / group_lines).min(RECORD / GROUP);
    for block in 0..groups.div_ceil(2) {
        let mut terms = [[V::splat(0.0); T]; M];
        for group in 2 * block..(2 * block + 2).min(groups) {
            let lines = group_of::<T>(lines, group, group_lines);
            if !EXPANDED {
                prefetch_records::<M>(lines[0]);
            }
            let dots = dots::<V, F, M, T, EXPANDED>(lines, group, 0..EXPANDED_LINES, x);
            for t in 0..T {
                let (step, offset) = (scales[t].step::<V>(group), scales[t].offset::<V>(group));
                for m in 0..M {
                    terms[m][t] = V::from_ints(dots[m][t]).mul_add(step, terms[m][t]);
                    if let Some(offset) = offset {
                        let sum = x[m].sums[2 * group] + x[m].sums[2 * group + 1];
                        terms[m][t] = offset.mul_add(V::splat(f32::from(sum)), terms[m][t]);
                    }
                }
            }
        }
        for m in 0..M {
            let scale = V::splat(x[m].scales[block]);
            for t in 0..T {
                sums[m][t] = terms[m][t].mul_add(scale, sums[m][t]);
            }
        }
    }
}

/// Adds a step for 256 columns, and one for their minimums.
#[inline(always)]
fn add_integers<V: Lanes, F: BlockFormat, const M: usize, const T: usize, const EXPANDED: bool>(
    sums: &mut [[V; T]; M],
    scales: [&F::Scales; T],
    lines: [&[Line]; T],
    x: &[Span; M],
) {
    let group_lines = if EXPANDED { EXPANDED_LINES } else { F::BITS };
    let columns = F::Scales::COLUMNS;
    let mut totals = [[V::splat_int(0); T]; M];
    // Groups in fours: each lane's four bytes hold four integer scales.
    for quad in 0..RECORD / columns / 4 {
        let Some(first) = scales[0].factors::<V>(quad) else { return };
        let mut factors = [first; T];
        for t in 1..T {
            factors[t] = scales[t].factors::<V>(quad).unwrap_or(first);
        }
        for part in 0..4 {
            let column = (4 * quad + part) * columns;
            let group = column / GROUP;
            let first = column % GROUP / 4;
            let lines = group_of::<T>(lines, group, group_lines);
            if !EXPANDED && first == 0 {
                prefetch_records::<M>(lines[0]);
            }
            let dots = dots::<V, F, M, T, EXPANDED>(lines, group, first..first + columns / 4, x);
            for t in 0..T {
                let factor = V::first_bytes(factors[t]);
                factors[t] = V::next_bytes(factors[t]);
                for m in 0..M {
                    totals[m][t] = V::add_products(totals[m][t], dots[m][t], factor);
                }
            }
        }
    }
    let mut group_sums = [[[0; 2]; RECORD / SUMMED / 2]; M];
    for m in 0..M {
        group_sums[m] = sums_of_groups::<F>(&x[m]);
    }
    for t in 0..T {
        let step = scales[t].step::<V>(0);
        for m in 0..M {
            let scale = step.mul(V::splat(x[m].scales[0]));
            sums[m][t] = V::from_ints(totals[m][t]).mul_add(scale, sums[m][t]);
        }
        let Some(offset) = scales[t].offset::<V>(0) else { continue };
        let mut totals = [V::splat_int(0); M];
        for quad in 0..RECORD / columns / 4 {
            let Some(mins) = scales[t].mins::<V>(quad) else { continue };
            let mins = [V::pair(mins, [0, 1]), V::pair(mins, [2, 3])];
            for m in 0..M {
                totals[m] = V::dot_pairs(totals[m], mins[0], group_sums[m][2 * quad]);
                totals[m] = V::dot_pairs(totals[m], mins[1], group_sums[m][2 * quad + 1]);
            }
        }
        for m in 0..M {
            let scale = offset.mul(V::splat(x[m].scales[0]));
            sums[m][t] = V::from_ints(totals[m]).mul_add(scale, sums[m][t]);
        }
    }
}

/// The lines of a group of 32 columns.
#[inline(always)]
fn group_of<const T: usize>(lines: [&[Line]; T], group: usize, group_lines: usize) -> [&[Line]; T] {
    let mut groups = lines;
    for t in 0..T {
        groups[t] = &lines[t][group * group_lines..(group + 1) * group_lines];
    }
    groups
}

#[inline(always)]
fn prefetch_records<const M: usize>(lines: &[Line]) {
    for line in lines {
        prefetch_stream::<M>(line);
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

/// `Σ quant · x` over the columns of a range of lines of a group.
#[inline(always)]
fn dots<V: Lanes, F: BlockFormat, const M: usize, const T: usize, const EXPANDED: bool>(
    lines: [&[Line]; T],
    group: usize,
    range: Range<usize>,
    x: &[Span; M],
) -> [[V::Ints; T]; M] {
    let mut dots = [[V::splat_int(0); T]; M];
    if F::ZERO > 0 {
        // Only the halves of the group within the range get their zero-point correction.
        let half = |half: usize| if range.contains(&(4 * half)) { -i16::from(F::ZERO) } else { 0 };
        let parts = V::splat_pair([half(0), half(1)]);
        for m in 0..M {
            let sums = [x[m].sums[2 * group], x[m].sums[2 * group + 1]];
            let start = if F::ZERO == 128 {
                V::start_bytes_of(parts, sums)
            } else {
                V::dot_pairs(V::splat_int(0), parts, sums)
            };
            dots[m] = [start; T];
        }
    }
    for j in range {
        for t in 0..T {
            let codes = if EXPANDED { V::load_bytes(&lines[t][j]) } else { code::<V, F>(lines[t], j) };
            for m in 0..M {
                let quad = V::quad(x[m].quads[group * EXPANDED_LINES + j]);
                dots[m][t] = if F::ZERO == 128 {
                    V::dot_bytes(dots[m][t], codes, quad)
                } else {
                    V::dot_small_bytes(dots[m][t], codes, quad)
                };
            }
        }
    }
    dots
}
