//! Products of many rows with weights in ggml's block types, on a matrix unit.
//!
//! For each 256 columns, the two tiles are expanded once to panels of unsigned bytes, 16 KiB, and all rows
//! are multiplied by them. The integer sums, exact in any order, are those of [`blocks`](super::blocks), and
//! so are the steps of the outputs' chains.
//!
//! - *Types with integer scales*: a weight is the integer `factor · (code - zero)`, at most 2^14 in
//!   magnitude. The two bytes of this integer plus 2^15 are two panels: one product of 256 columns each.
//! - *Types with a float scale per 32 columns*: the codes are the panel. A step of the unit spans 64 columns,
//!   so that the second half of a group's panel is zeros.

#![allow(clippy::needless_range_loop, reason = "see `integer`")]

use std::ops::Range;

use super::super::lanes::{Aligned, Kernel, LANES, Lanes, Line};
use super::super::matrix_unit::{MatrixUnit, Products, SIDE, STEP};
use super::super::pack::{BlockFormat, EXPANDED_LINES, GROUP, RECORD, Record, RecordTile, Scales, code};
use super::activations::{QuantizedRows, Span};
use super::blocks::{add_group, add_record};
use super::panels::NextSpan;

/// Multiplies `rows` by two tiles; `out` is `[rows, 2, 16]`.
pub(super) struct TileProducts<'a, F: BlockFormat> {
    pub tiles: [RecordTile<'a, F>; 2],
    pub x: &'a QuantizedRows,
    pub rows: Range<usize>,
    pub out: &'a mut [[[f32; LANES]; 2]],
}

/// Lines of a step of the matrix unit.
const STEP_LINES: usize = STEP / 4;
/// Lines of 256 columns expanded to one byte each.
const SPAN_LINES: usize = RECORD / 4;
/// Rows whose sums are in registers.
const ROWS: usize = 8;

/// Panels of 256 columns of a tile: the low bytes, then the high bytes, or the codes of each group with as
/// many lines of zeros.
type Panels = Aligned<[Line; 2 * SPAN_LINES]>;

/// Results of some rows with two tiles, `[rows, 2, 16]`.
type Out = [[[f32; LANES]; 2]];

impl<F: BlockFormat> Kernel for TileProducts<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let Self { tiles, x, rows, out } = self;
        out.fill([[0.0; LANES]; 2]);
        let mut panels = [Aligned([[0; size_of::<Line>()]; 2 * SPAN_LINES]); 2];
        V::Unit::configure();
        for (span, (a, b)) in tiles[0].records().zip(tiles[1].records()).enumerate() {
            let records = [a, b];
            let has_factors = records[0].scales.factors::<V>(0).is_some();
            for t in 0..2 {
                if has_factors {
                    expand_scaled::<V, F>(&records[t], &mut panels[t]);
                } else {
                    expand_codes::<V, F>(&records[t], &mut panels[t]);
                }
            }
            let steps = rows.len().div_ceil(SIDE);
            let mut next = NextSpan::of_lines(records.each_ref().map(|record| record.all_lines), steps);
            for (out, row) in out.chunks_mut(SIDE).zip(rows.clone().step_by(SIDE)) {
                next.prefetch_step();
                let x: &[Span; SIDE] = x.spans(span, row);
                if has_factors {
                    add_integers::<V, F>(&panels, &records, x, out);
                } else {
                    add_groups::<V, F>(&panels, &records, x, out);
                }
            }
        }
        V::Unit::release();
    }
}

/// Expands the codes of each group of 32 columns to [`EXPANDED_LINES`] lines, before as many lines of zeros.
#[inline(always)]
fn expand_codes<V: Lanes, F: BlockFormat>(record: &Record<'_, F>, panels: &mut Panels) {
    for (lines, panel) in record.lines.chunks_exact(F::BITS).zip(panels.0.as_chunks_mut::<STEP_LINES>().0) {
        for j in 0..EXPANDED_LINES {
            V::store_bytes(code::<V, F>(lines, j), &mut panel[j]);
        }
    }
}

/// Expands a record to the two bytes of `factor · (code - zero) + 2^15`: the lines of the low bytes, then
/// those of the high bytes.
#[inline(always)]
fn expand_scaled<V: Lanes, F: BlockFormat>(record: &Record<'_, F>, panels: &mut Panels) {
    let lines_of_factor = F::Scales::COLUMNS / 4;
    let (low, high) = panels.0.split_at_mut(SPAN_LINES);
    let (mut codes, mut quad) = ([0; size_of::<Line>()], [0; size_of::<Line>()]);
    for (group, lines) in record.lines.chunks_exact(F::BITS).enumerate().take(RECORD / GROUP) {
        for j in 0..EXPANDED_LINES {
            let line = group * EXPANDED_LINES + j;
            let factor = line / lines_of_factor;
            if line.is_multiple_of(4 * lines_of_factor)
                && let Some(factors) = record.scales.factors::<V>(factor / 4)
            {
                V::store_bytes(factors, &mut quad);
            }
            V::store_bytes(code::<V, F>(lines, j), &mut codes);
            [low[line], high[line]] = scaled(&codes, &factors_of(&quad, factor % 4), F::ZERO);
        }
    }
}

/// One of the four signed bytes of each lane, in both halves of the lane.
#[inline(always)]
fn factors_of(quad: &Line, part: usize) -> [u16; 2 * LANES] {
    let mut factors = [0; 2 * LANES];
    for word in 0..2 * LANES {
        factors[word] = i16::from(quad[word / 2 * 4 + part] as i8) as u16;
    }
    factors
}

/// The low and the high bytes of `factor · (code - zero) + 2^15`.
#[inline(always)]
fn scaled(codes: &Line, factors: &[u16; 2 * LANES], zero: u8) -> [Line; 2] {
    let codes: [u16; 2 * LANES] = bytemuck::cast(*codes);
    let (mut low, mut high) = ([0; 2 * LANES], [0; 2 * LANES]);
    for word in 0..2 * LANES {
        let base = (1_u16 << 15).wrapping_sub(factors[word].wrapping_mul(u16::from(zero)));
        let even = (codes[word] & 0xff).wrapping_mul(factors[word]).wrapping_add(base);
        let odd = (codes[word] >> 8).wrapping_mul(factors[word]).wrapping_add(base);
        low[word] = even & 0xff | odd << 8;
        high[word] = even >> 8 | odd & 0xff00;
    }
    [bytemuck::cast(low), bytemuck::cast(high)]
}

/// Adds the products of up to [`SIDE`] rows with 256 columns of integers.
#[inline(always)]
fn add_integers<V: Lanes, F: BlockFormat>(
    panels: &[Panels; 2],
    records: &[Record<'_, F>; 2],
    x: &[Span; SIDE],
    out: &mut Out,
) {
    let Aligned([low, high]) = &mut Aligned([[[0; SIDE]; SIDE]; 2]);
    multiply::<V>(panels, 0, x, 0, RECORD / STEP, low);
    multiply::<V>(panels, SPAN_LINES, x, 0, RECORD / STEP, high);
    for m in 0..out.len() {
        // The zero point 2^15 is 128 in the high bytes.
        let correction = x[m].byte_corrections[0];
        for (low, high) in low[m].iter_mut().zip(high[m]) {
            *low += (high + correction) << 8;
        }
    }
    add_rows::<V, F>(records, None, low, x, out);
}

/// Adds the products of up to [`SIDE`] rows with codes, group by group.
#[inline(always)]
fn add_groups<V: Lanes, F: BlockFormat>(
    panels: &[Panels; 2],
    records: &[Record<'_, F>; 2],
    x: &[Span; SIDE],
    out: &mut Out,
) {
    let Aligned(products) = &mut Aligned([[0; SIDE]; SIDE]);
    for group in 0..records[0].lines.len() / F::BITS {
        multiply::<V>(panels, group * STEP_LINES, x, group * EXPANDED_LINES, 1, products);
        add_rows::<V, F>(records, Some(group), products, x, out);
    }
}

/// Multiplies the columns from quad `quad` on by the panels' lines from `line` on.
#[inline(always)]
fn multiply<V: Lanes>(
    panels: &[Panels; 2],
    line: usize,
    x: &[Span; SIDE],
    quad: usize,
    steps: usize,
    products: &mut Products,
) {
    let values = &raw const x[0].quads[quad];
    let weights = panels.each_ref().map(|panels| panels.0[line..line + steps * STEP_LINES].as_ptr().cast());
    // SAFETY: there are `SIDE` rows, one span apart. The columns are in the span, or are the first bytes
    // after its quads, still within it, which the zeros of a group's panel multiply. The lines are there: 16,
    // 1,024 bytes, per step.
    unsafe { V::Unit::multiply(values.cast(), size_of::<Span>(), weights, steps, products) };
}

/// Adds a step of the chains of some rows with both tiles: of a group of columns, or of the whole record.
#[inline(always)]
fn add_rows<V: Lanes, F: BlockFormat>(
    records: &[Record<'_, F>; 2],
    group: Option<usize>,
    products: &Products,
    x: &[Span; SIDE],
    out: &mut Out,
) {
    for t in 0..2 {
        let scales = records[t].scales;
        let mut done = 0;
        while done < out.len() {
            let (products, x, out) = (&products[done..], &x[done..], &mut out[done..]);
            done += match out.len() {
                ROWS.. => add_step::<V, F, ROWS>(scales, group, products, x, t, out),
                _ => add_step::<V, F, 1>(scales, group, products, x, t, out),
            };
        }
    }
}

/// Adds a step of the chains of `M` rows with tile `t` of the two, and returns `M`.
#[inline(always)]
fn add_step<V: Lanes, F: BlockFormat, const M: usize>(
    scales: &F::Scales,
    group: Option<usize>,
    products: &[[i32; SIDE]],
    x: &[Span],
    t: usize,
    out: &mut Out,
) -> usize {
    let x: &[Span; M] = x.first_chunk().expect("as many as rows");
    let mut sums = [V::splat(0.0); M];
    let mut dots = [V::splat_int(0); M];
    for m in 0..M {
        sums[m] = V::load(&out[m][t]);
        dots[m] = V::load_ints(&products[m].as_chunks().0[t]);
    }
    match group {
        Some(group) => {
            let zero = V::splat_pair([-i16::from(F::ZERO); 2]);
            for m in 0..M {
                dots[m] = V::dot_pairs(dots[m], zero, [x[m].sums[2 * group], x[m].sums[2 * group + 1]]);
            }
            add_group::<V, F, M>(&mut sums, &dots, scales, group, x);
        }
        None => add_record::<V, F, M>(&mut sums, &dots, scales, x),
    }
    for m in 0..M {
        sums[m].store(&mut out[m][t]);
    }
    M
}
