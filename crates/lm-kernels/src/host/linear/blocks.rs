//! Products with weights in ggml's block types: one kernel for all of them.
//!
//! Codes are multiplied with the rows' integers; their zero, times the sum of the rows' integers, is where a group's sum begins. Of
//! types whose groups have integer scales, the sums are multiplied and added as integers too, so that 256 columns are one step
//! of an output's chain, `sum = (step · d) · dot + sum`, and another one for the minimums. Of the others each 32 columns are.
//! For [many](super::panels) rows, the codes of 256 columns are expanded first; the sums are the same integers, and the chain is the same.

#![allow(clippy::needless_range_loop, reason = "see `integer`")]

use std::ops::Range;

use super::super::cpu::Kernel;
use super::super::lanes::{LANES, Lanes, Line, prefetch};
use super::super::pack::{BlockFormat, EXPANDED_LINES, GROUP, GroupScales, RECORD, RecordTile, Scales, code};
use super::activations::{QuantizedRows, Span};
use super::integer::SPAN_LINES;
use super::multiply::FEW_ROWS;

/// How far ahead of their use records are asked for, in bytes.
const AHEAD: usize = 7 << 10;
/// Columns whose rows' integers have a sum.
const SUMMED: usize = 16;

/// Products of the rows `rows` with two tiles; `out` is `[rows, 2, 16]`.
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
        let many = V::PANELS && rows.len() > FEW_ROWS;
        for t in 0..2 {
            if many {
                by_panels::<V, F>(tiles[t], x, rows.clone(), t, out);
            } else {
                as_stored::<V, F>(tiles[t], x, rows.clone(), t, out);
            }
        }
    }
}

/// Rows times a tile whose codes are used as they are stored.
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

/// `M` rows times a tile. Returns how many rows that are.
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
        ask_ahead(record.scale_lines());
        add_record::<V, F, M, false>(&mut sums, record.scales, record.lines, x.spans(span, row));
    }
    for m in 0..M {
        sums[m].store(&mut out[m][t]);
    }
    M
}

/// Rows times a tile whose codes are expanded, 256 columns at a time; the chains are kept in `out` in between.
#[inline(always)]
fn by_panels<V: Lanes, F: BlockFormat>(
    tile: RecordTile<'_, F>,
    x: &QuantizedRows,
    rows: Range<usize>,
    t: usize,
    out: &mut [[[f32; LANES]; 2]],
) {
    out.iter_mut().for_each(|out| out[t] = [0.0; LANES]);
    let mut room = [[0; size_of::<Line>()]; SPAN_LINES];
    for (span, record) in tile.records().enumerate() {
        let groups = record.lines.len() / F::BITS;
        for group in 0..groups {
            let lines = &record.lines[group * F::BITS..(group + 1) * F::BITS];
            for j in 0..EXPANDED_LINES {
                V::store_bytes(code::<V, F>(lines, j), &mut room[group * EXPANDED_LINES + j]);
            }
        }
        let panel = &room[..groups * EXPANDED_LINES];
        let mut done = 0;
        while done < out.len() {
            let row = rows.start + done;
            let out = &mut out[done..];
            done += match out.len() {
                8.. => add_span::<V, F, 8>(record.scales, panel, x.spans(span, row), t, out),
                4..8 => add_span::<V, F, 4>(record.scales, panel, x.spans(span, row), t, out),
                _ => add_span::<V, F, 1>(record.scales, panel, x.spans(span, row), t, out),
            };
        }
    }
}

/// Adds the products of `M` rows with a panel. Returns how many rows that are.
#[inline(always)]
fn add_span<V: Lanes, F: BlockFormat, const M: usize>(
    scales: &F::Scales,
    panel: &[Line],
    x: &[Span; M],
    t: usize,
    out: &mut [[[f32; LANES]; 2]],
) -> usize {
    let mut sums = [V::splat(0.0); M];
    for m in 0..M {
        sums[m] = V::load(&out[m][t]);
    }
    add_record::<V, F, M, true>(&mut sums, scales, panel, x);
    for m in 0..M {
        sums[m].store(&mut out[m][t]);
    }
    M
}

/// The steps of the outputs' chains for a record. `lines` has its codes, expanded to bytes or not.
#[inline(always)]
fn add_record<V: Lanes, F: BlockFormat, const M: usize, const EXPANDED: bool>(
    sums: &mut [V; M],
    scales: &F::Scales,
    lines: &[Line],
    x: &[Span; M],
) {
    let group_lines = if EXPANDED { EXPANDED_LINES } else { F::BITS };
    match scales.groups::<V>() {
        GroupScales::Floats { steps, offsets } => {
            for group in 0..(lines.len() / group_lines).min(RECORD / GROUP) {
                let lines = &lines[group * group_lines..(group + 1) * group_lines];
                if !EXPANDED {
                    ask_ahead(lines);
                }
                let dots = dots::<V, F, M, EXPANDED>(lines, group * GROUP / SUMMED, 0..EXPANDED_LINES, x);
                for m in 0..M {
                    let scale = x[m].scales[group / 2];
                    sums[m] = V::from_ints(dots[m]).mul_add(steps[group].mul(V::splat(scale)), sums[m]);
                    if let Some(offsets) = &offsets {
                        let sum = x[m].sums[2 * group] + x[m].sums[2 * group + 1];
                        sums[m] = offsets[group].mul_add(V::splat(scale * f32::from(sum)), sums[m]);
                    }
                }
            }
        }
        GroupScales::Integers { step, factors, mins } => {
            let mut totals = [V::splat_int(0); M];
            // As many groups as have integers in a lane's bytes.
            for quad in 0..RECORD / F::Scales::COLUMNS / 4 {
                let mut factors = factors[quad];
                for part in 0..4 {
                    let column = (4 * quad + part) * F::Scales::COLUMNS;
                    let group = column / GROUP;
                    let lines = &lines[group * group_lines..(group + 1) * group_lines];
                    if !EXPANDED && column.is_multiple_of(GROUP) {
                        ask_ahead(lines);
                    }
                    let first = column % GROUP / 4;
                    let range = first..first + F::Scales::COLUMNS / 4;
                    let dots = dots::<V, F, M, EXPANDED>(lines, column / SUMMED, range, x);
                    let factor = V::first_bytes(factors);
                    factors = V::next_bytes(factors);
                    for m in 0..M {
                        totals[m] = V::add_products(totals[m], dots[m], factor);
                    }
                }
            }
            for m in 0..M {
                let scale = step.mul(V::splat(x[m].scales[0]));
                sums[m] = V::from_ints(totals[m]).mul_add(scale, sums[m]);
            }
            if let Some((step, mins)) = mins {
                let mut totals = [V::splat_int(0); M];
                for quad in 0..RECORD / F::Scales::COLUMNS / 4 {
                    let [even, odd] = V::pairs(mins[quad]);
                    for m in 0..M {
                        let [a, b, c, d] = group_sums::<F>(&x[m], quad);
                        totals[m] = V::dot_pairs(totals[m], even, [a, c]);
                        totals[m] = V::dot_pairs(totals[m], odd, [b, d]);
                    }
                }
                for m in 0..M {
                    let scale = step.mul(V::splat(-x[m].scales[0]));
                    sums[m] = V::from_ints(totals[m]).mul_add(scale, sums[m]);
                }
            }
        }
    }
}

#[inline(always)]
fn ask_ahead(lines: &[Line]) {
    for line in lines {
        prefetch(line, AHEAD);
    }
}

/// The sums of a row's integers over four groups.
#[inline(always)]
fn group_sums<F: BlockFormat>(x: &Span, quad: usize) -> [i16; 4] {
    let per_group = F::Scales::COLUMNS / SUMMED;
    let mut sums = [0; 4];
    for part in 0..4 {
        for i in 0..per_group {
            sums[part] += x.sums[(4 * quad + part) * per_group + i];
        }
    }
    sums
}

/// `Σ quant · x` over the columns of some lines of a group; `first` is the first of their sums.
#[inline(always)]
fn dots<V: Lanes, F: BlockFormat, const M: usize, const EXPANDED: bool>(
    lines: &[Line],
    first: usize,
    range: Range<usize>,
    x: &[Span; M],
) -> [V::Ints; M] {
    let mut dots = [V::splat_int(0); M];
    if F::ZERO > 0 {
        for m in 0..M {
            let mut sum = 0;
            for i in 0..range.len() * 4 / SUMMED {
                sum += i32::from(x[m].sums[first + i]);
            }
            let offset = -i32::from(F::ZERO) * sum;
            dots[m] = if F::ZERO == 128 { V::start_bytes(offset) } else { V::splat_int(offset) };
        }
    }
    // The columns of the first sum lie 4 lines before those of the second.
    let quads = (first * SUMMED / GROUP) * EXPANDED_LINES;
    for j in range {
        let codes = if EXPANDED { V::load_bytes(&lines[j]) } else { code::<V, F>(lines, j) };
        for m in 0..M {
            let quad = V::quad(x[m].quads[quads + j]);
            dots[m] = if F::ZERO == 128 {
                V::dot_bytes(dots[m], codes, quad)
            } else {
                V::dot_small_bytes(dots[m], codes, quad)
            };
        }
    }
    dots
}
