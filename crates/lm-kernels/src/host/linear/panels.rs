//! Products of many rows with weights in the integer formats.
//!
//! For each 256 columns, the two tiles are expanded once to panels of unsigned bytes, 8 KiB that stay in the
//! L1 cache, and all rows are multiplied by them, as many at a time as there are accumulator registers. The
//! outputs' float chains are kept in memory in between: one addition per 64 (Q4) or 16 (Q8) steps of the
//! inner loop.

#![allow(clippy::needless_range_loop, reason = "see the parent")]

use std::ops::Range;

use super::super::lanes::{Aligned, LANES, Lanes, Line, prefetch_ahead};
use super::super::matrix_unit::{MatrixUnit, SIDE, STEP};
use super::super::pack::{GROUP, Tile};
use super::activations::{QuantizedRows, SPAN, Span};
use super::integer::{IntegerWeights, SPAN_LINES};

/// Maximum rows for which [`integer`](super::integer) is faster; a matrix unit has tiles of 16 rows.
pub(super) const fn few_rows<V: Lanes, F: IntegerWeights>() -> usize {
    if V::Unit::PRESENT { SIDE } else { F::FEW_ROWS }
}

/// Multiplies `rows` by two tiles; `out` is `[rows, 2, 16]`.
#[inline(always)]
pub(super) fn multiply<V: Lanes, F: IntegerWeights>(
    tiles: &[Tile<'_, F>; 2],
    x: &QuantizedRows,
    rows: Range<usize>,
    out: &mut [[[f32; LANES]; 2]],
) {
    out.fill([[0.0; LANES]; 2]);
    let mut rooms = [Aligned([[0; size_of::<Line>()]; SPAN_LINES]); 2];
    let blocks_of_span = SPAN / F::BLOCK;
    for span in 0..tiles[0].scales.len().div_ceil(blocks_of_span) {
        let [room_a, room_b] = &mut rooms;
        let panels = [F::bytes(&tiles[0], span, &mut room_a.0), F::bytes(&tiles[1], span, &mut room_b.0)];
        let scales = [0, 1].map(|t| &tiles[t].scales[span * blocks_of_span..]);
        let rows_of_step = if V::Unit::PRESENT { SIDE } else { ROWS };
        let mut next = NextSpan::after(tiles, span, rows.len().div_ceil(rows_of_step));
        if V::Unit::PRESENT {
            add_span_by_tiles::<V, F>(panels, scales, x, span, rows.clone(), &mut next, out);
        } else {
            add_span_by_rows::<V, F>(panels, scales, x, span, rows.clone(), &mut next, out);
        }
    }
}

/// Rows multiplied at a time, if there are as many.
const ROWS: usize = 12;

/// The span after one of both tiles, prefetched step by step while rows are multiplied with that one. No
/// weights are read meanwhile, so that the processor's own prefetching has stopped when the next span is
/// expanded.
pub(super) struct NextSpan<'a> {
    /// Lines of the span before it, as many as the next one has.
    before: [&'a [Line]; 2],
    /// Lines per step.
    share: usize,
    done: usize,
}

impl<'a> NextSpan<'a> {
    /// The span after `span`, to be prefetched in `steps`; after the last span, the memory that follows the
    /// tiles.
    #[inline(always)]
    fn after<F: IntegerWeights>(tiles: &[Tile<'a, F>; 2], span: usize, steps: usize) -> Self {
        let len = SPAN / GROUP * F::GROUP_LINES;
        let place = span * len..tiles[0].lines.len().min((span + 1) * len);
        Self::of_lines([&tiles[0].lines[place.clone()], &tiles[1].lines[place]], steps)
    }

    /// The span after the one with these lines, which are as many in both tiles.
    #[inline(always)]
    pub fn of_lines(before: [&'a [Line]; 2], steps: usize) -> Self {
        Self { before, share: before[0].len().div_ceil(steps.max(1)), done: 0 }
    }

    #[inline(always)]
    pub fn prefetch_step(&mut self) {
        let distance = size_of_val(self.before[0]);
        let end = (self.done + self.share).min(self.before[0].len());
        for line in self.done..end {
            prefetch_ahead(&self.before[0][line], distance);
            prefetch_ahead(&self.before[1][line], distance);
        }
        self.done = end;
    }
}

/// Adds the products of the rows with the panels of a span, as many rows at a time as there are accumulator
/// registers.
#[inline(always)]
fn add_span_by_rows<V: Lanes, F: IntegerWeights>(
    panels: [&[Line]; 2],
    scales: [&[F::Scales]; 2],
    x: &QuantizedRows,
    span: usize,
    rows: Range<usize>,
    next: &mut NextSpan<'_>,
    out: &mut [[[f32; LANES]; 2]],
) {
    let mut done = 0;
    while done < out.len() {
        next.prefetch_step();
        let row = rows.start + done;
        let out = &mut out[done..];
        done += match out.len() {
            1 => add_span::<V, F, 1>(panels, scales, x.spans(span, row), out),
            2..4 => add_span::<V, F, 2>(panels, scales, x.spans(span, row), out),
            4..8 => add_span::<V, F, 4>(panels, scales, x.spans(span, row), out),
            8..ROWS => add_span::<V, F, 8>(panels, scales, x.spans(span, row), out),
            _ => add_span::<V, F, ROWS>(panels, scales, x.spans(span, row), out),
        };
    }
}

/// Adds the products of the rows with the panels of a span, on the matrix unit.
#[inline(always)]
fn add_span_by_tiles<V: Lanes, F: IntegerWeights>(
    panels: [&[Line]; 2],
    scales: [&[F::Scales]; 2],
    x: &QuantizedRows,
    span: usize,
    rows: Range<usize>,
    next: &mut NextSpan<'_>,
    out: &mut [[[f32; LANES]; 2]],
) {
    let Aligned(products) = &mut Aligned([[0; SIDE]; SIDE]);
    V::Unit::configure();
    for (out, row) in out.chunks_mut(SIDE).zip(rows.step_by(SIDE)) {
        next.prefetch_step();
        let x: &[Span; SIDE] = x.spans(span, row);
        let (a, b) = (panels[0].chunks(F::BLOCK_LINES), panels[1].chunks(F::BLOCK_LINES));
        for (block, (a, b)) in a.zip(b).enumerate().take(SPAN / F::BLOCK) {
            let steps = a.len().min(b.len()) / (STEP / 4);
            let values = &raw const x[0].quads[block * F::BLOCK_LINES];
            // SAFETY: there are `SIDE` rows, one span apart, with the columns of the block; each panel has 16
            // lines, 1,024 bytes, per step.
            unsafe {
                let weights = [a.as_ptr().cast(), b.as_ptr().cast()];
                V::Unit::multiply(values.cast(), size_of::<Span>(), weights, steps, products);
            }
            for (m, out) in out.iter_mut().enumerate() {
                let correction = x[m].byte_corrections[block];
                for product in &mut products[m] {
                    *product += correction;
                }
                let (halves, _) = products[m].as_chunks();
                let dots = [[V::load_ints(&halves[0]), V::load_ints(&halves[1])]];
                let x = x[m..].first_chunk().expect("a row");
                add_products::<V, F, 1>(&dots, scales, block, x, std::array::from_mut(out));
            }
        }
    }
    V::Unit::release();
}

/// Adds the products of `M` rows with the panels, block by block, and returns `M`.
#[inline(always)]
fn add_span<V: Lanes, F: IntegerWeights, const M: usize>(
    panels: [&[Line]; 2],
    scales: [&[F::Scales]; 2],
    x: &[Span; M],
    out: &mut [[[f32; LANES]; 2]],
) -> usize {
    let out: &mut [[[f32; LANES]; 2]; M] = out.first_chunk_mut().expect("as many as rows");
    let (a, b) = (panels[0].chunks(F::BLOCK_LINES), panels[1].chunks(F::BLOCK_LINES));
    for (block, (a, b)) in a.zip(b).enumerate().take(SPAN / F::BLOCK) {
        let dots = dots::<V, F, M>(a, b, block, x);
        add_products::<V, F, M>(&dots, scales, block, x, out);
    }
    M
}

/// Adds one step of the outputs' chains.
#[inline(always)]
fn add_products<V: Lanes, F: IntegerWeights, const M: usize>(
    dots: &[[V::Ints; 2]; M],
    scales: [&[F::Scales]; 2],
    block: usize,
    x: &[Span; M],
    out: &mut [[[f32; LANES]; 2]; M],
) {
    let scales = [V::load_bf16(F::steps(&scales[0][block])), V::load_bf16(F::steps(&scales[1][block]))];
    for m in 0..M {
        let scale_of_x = V::splat(x[m].scales[block]);
        for t in 0..2 {
            let sum = V::load(&out[m][t]);
            V::from_ints(dots[m][t]).mul_add(scales[t].mul(scale_of_x), sum).store(&mut out[m][t]);
        }
    }
}

/// Computes the dot products of a block with `M` rows.
#[inline(always)]
fn dots<V: Lanes, F: IntegerWeights, const M: usize>(
    a: &[Line],
    b: &[Line],
    block: usize,
    x: &[Span; M],
) -> [[V::Ints; 2]; M] {
    let mut dots = [[V::start_bytes(x[0].byte_corrections[block]); 2]; M];
    for m in 1..M {
        dots[m] = [V::start_bytes(x[m].byte_corrections[block]); 2];
    }
    for j in 0..a.len().min(b.len()).min(F::BLOCK_LINES) {
        let w = [V::load_bytes(&a[j]), V::load_bytes(&b[j])];
        for m in 0..M {
            let quad = V::quad(x[m].quads[block * F::BLOCK_LINES + j]);
            dots[m] = [V::dot_bytes(dots[m][0], w[0], quad), V::dot_bytes(dots[m][1], w[1], quad)];
        }
    }
    dots
}
