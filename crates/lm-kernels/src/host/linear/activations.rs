//! Activation rows in the form that a weight format's kernel needs: quantised to 8 bits, or as floats.

use std::borrow::Cow;
use std::cell::RefCell;

use bytemuck::Zeroable;

use super::super::isa::Isa;
use super::super::lanes::{Kernel, Lanes, ZeroPointCorrection, round};
use super::super::matrix_unit::SIDE;
use super::super::norm::{Norm, norm_row, rms_norm_on};
use super::super::pack::GROUP;
use super::super::pool::Pool;
use super::super::split::{Block, SharedMatrix, for_each_chunk};
use super::Input;

/// Rows per task; so few are converted by the calling thread alone.
const ROWS: usize = 8;

/// Columns of a [`Span`].
pub(super) const SPAN: usize = 256;

/// Up to 256 quantised columns of a row, `scale · value`; missing columns are zero.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Span {
    /// Values from -127 to 127, in quads of four adjacent columns.
    pub quads: [[i8; 4]; SPAN / 4],
    /// Scale of each block of columns. NaN or infinite if an activation is, so that it propagates to the
    /// results.
    pub scales: [f32; SPAN / GROUP],
    /// Zero-point correction of each block of 64 or 256 columns for byte weights with zero point 128: -128
    /// times the sum of the values.
    pub byte_corrections: [i32; 4],
    /// Sum of the values of each 16 columns.
    pub sums: [i16; SPAN / 16],
    /// Scale times the sum of the values of each group, for blocks of 32 columns.
    pub scaled_sums: [f32; SPAN / GROUP],
    /// Zero-point correction of each group of 32 columns, for nibble weights with zero point 8.
    pub nibble_corrections: [ZeroPointCorrection; SPAN / GROUP],
}

// SAFETY: arrays of numbers, for which all-zero bits are valid.
unsafe impl Zeroable for Span {}

/// Rows quantised to 8-bit integers with one scale per block of columns.
pub(super) struct QuantizedRows {
    /// At least `[count, room]`: the spans of all rows for the same columns are adjacent.
    spans: Vec<Span>,
    /// Spans per row.
    count: usize,
    /// The rows, padded so that a matrix-unit tile may start at the last one.
    room: usize,
}

impl QuantizedRows {
    /// Quantises rows with a scale per `block` columns: 32, 64 or 256.
    pub fn new(isa: Isa, pool: &Pool, input: &Input<'_>, cols: usize, block: usize) -> Self {
        let mut rows = Self::with_room(input.rows, cols.div_ceil(SPAN));
        let (count, shared) = (rows.count, rows.shared());
        let tasks = if cols == 0 { 0 } else { input.rows.div_ceil(ROWS) };
        pool.run(tasks, |task| {
            let rows = task * ROWS..((task + 1) * ROWS).min(input.rows);
            let x = &input.x[rows.start * cols..rows.end * cols];
            // SAFETY: tasks have distinct rows, which are columns here.
            let out = unsafe { shared.block(0..count, rows) };
            isa.run(QuantizeRows { x, norm: input.norm, cols, block, out });
        });
        rows
    }

    /// Gathers rows by index, in the order of `numbers`.
    pub fn gathered(&self, pool: &Pool, numbers: &[usize]) -> Self {
        let mut rows = Self::with_room(numbers.len(), self.count);
        let (count, shared) = (rows.count, rows.shared());
        pool.run(numbers.len().div_ceil(ROWS), |task| {
            let places = task * ROWS..((task + 1) * ROWS).min(numbers.len());
            let numbers = &numbers[places.clone()];
            // SAFETY: tasks have distinct rows, which are columns here.
            let mut out = unsafe { shared.block(0..count, places) };
            for span in 0..count {
                for (out, &row) in out.row(span).iter_mut().zip(numbers) {
                    *out = self.spans[span * self.room + row];
                }
            }
        });
        rows
    }

    /// Allocates `rows` rows of `count` spans with stale contents from the last use of the memory: all spans
    /// of a row must be written; the products of the padding rows are discarded.
    fn with_room(rows: usize, count: usize) -> Self {
        let room = if rows <= ROWS { rows } else { rows + SIDE - 1 };
        let mut spans = FREE.with_borrow_mut(Vec::pop).unwrap_or_default();
        spans.resize(spans.len().max(room * count), Span::zeroed());
        Self { spans, count, room }
    }

    /// `[count, room]`, to be written.
    fn shared(&mut self) -> SharedMatrix<'_, Span> {
        SharedMatrix::new(&mut self.spans[..self.room * self.count], self.room)
    }

    /// Spans of `M` rows for the same columns; `row` is the first.
    #[inline(always)]
    pub fn spans<const M: usize>(&self, span: usize, row: usize) -> &[Span; M] {
        let spans = &self.spans[span * self.room..(span + 1) * self.room];
        spans[row..].first_chunk().expect("the rows of a piece")
    }
}

impl Drop for QuantizedRows {
    fn drop(&mut self) {
        FREE.with_borrow_mut(|free| free.push(std::mem::take(&mut self.spans)));
    }
}

thread_local! {
    /// Freed spans of earlier calls, as many as were in use at the same time, for reuse: a large allocation
    /// would be mapped and unmapped in each call.
    static FREE: RefCell<Vec<Vec<Span>>> = const { RefCell::new(Vec::new()) };
}

/// Rows quantised by one task.
struct QuantizeRows<'a> {
    x: &'a [f32],
    norm: Option<Norm<'a>>,
    cols: usize,
    block: usize,
    out: Block<'a, Span>,
}

impl Kernel for QuantizeRows<'_> {
    type Output = ();
    const ONLY_FLOATS: bool = true;

    #[inline(always)]
    fn run<V: Lanes>(mut self) {
        let mut padded = vec![0.0; self.cols.next_multiple_of(SPAN)];
        for (row, x) in self.x.chunks_exact(self.cols.max(1)).enumerate() {
            match &self.norm {
                Some(norm) => norm_row::<V>(x, norm, &mut padded[..self.cols]),
                None => padded[..self.cols].copy_from_slice(x),
            }
            for (index, x) in padded.as_chunks::<SPAN>().0.iter().enumerate() {
                let span = &mut self.out.row(index)[row];
                match self.block {
                    SPAN => quantize_span::<SPAN>(x, span),
                    GROUP => quantize_span::<GROUP>(x, span),
                    _ => quantize_span::<64>(x, span),
                }
            }
        }
    }
}

/// Quantises a span in blocks of `B` columns.
#[inline(always)]
fn quantize_span<const B: usize>(x: &[f32; SPAN], span: &mut Span) {
    let values: &mut [i8] = span.quads.as_flattened_mut();
    for (block, (x, values)) in
        x.as_chunks::<B>().0.iter().zip(values.as_chunks_mut::<B>().0.iter_mut()).enumerate()
    {
        span.scales[block] = quantize_block(x, values);
    }
    for (sum, values) in span.sums.iter_mut().zip(values.as_chunks::<16>().0) {
        *sum = values.iter().map(|&value| i16::from(value)).sum();
    }
    let mut sums = [0; SPAN / GROUP];
    for (sum, halves) in sums.iter_mut().zip(span.sums.as_chunks::<2>().0) {
        *sum = i32::from(halves[0]) + i32::from(halves[1]);
    }
    for (correction, sums) in span.byte_corrections.iter_mut().zip(sums.chunks_exact(B / GROUP)) {
        *correction = -128 * sums.iter().sum::<i32>();
    }
    if B == GROUP {
        for ((scaled, scale), sum) in span.scaled_sums.iter_mut().zip(span.scales).zip(sums) {
            *scaled = scale * sum as f32;
        }
    }
    for (correction, sum) in span.nibble_corrections.iter_mut().zip(sums) {
        *correction = ZeroPointCorrection::of(sum);
    }
}

/// Quantises a block and returns its scale.
#[inline(always)]
fn quantize_block<const B: usize>(x: &[f32; B], values: &mut [i8; B]) -> f32 {
    // The bits of nonnegative floats have the order of the floats; NaN is the largest.
    let mut largest = [0; GROUP];
    for x in x.as_chunks::<GROUP>().0 {
        for (largest, x) in largest.iter_mut().zip(x) {
            *largest = x.abs().to_bits().max(*largest);
        }
    }
    let scale = f32::from_bits(largest.iter().fold(0, |a, &b| a.max(b))) / 127.0;
    // A scale this small counts as zero; its inverse would be infinite.
    let inverse = if scale < 1e-36 { 0.0 } else { 1.0 / scale };
    for (value, x) in values.iter_mut().zip(x) {
        *value = round(x * inverse) as i8;
    }
    scale
}

/// Rows as floats, normalised if a norm is given.
pub(super) fn float_rows<'a>(isa: Isa, pool: &Pool, input: &Input<'a>) -> Cow<'a, [f32]> {
    let Some(norm) = input.norm else { return Cow::Borrowed(input.x) };
    let mut normed = vec![0.0; input.x.len()];
    rms_norm_on(isa, pool, input.x, norm, &mut normed);
    Cow::Owned(normed)
}

/// Gathers rows by index, in the order of `numbers`.
pub(super) fn gathered_floats(pool: &Pool, x: &[f32], cols: usize, numbers: &[usize]) -> Vec<f32> {
    let mut gathered = vec![0.0; numbers.len() * cols];
    for_each_chunk(pool, &mut gathered, ROWS * cols, |index, out| {
        for (out, &row) in out.chunks_exact_mut(cols).zip(&numbers[index * ROWS..]) {
            out.copy_from_slice(&x[row * cols..(row + 1) * cols]);
        }
    });
    gathered
}
