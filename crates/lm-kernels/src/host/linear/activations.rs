//! The rows of a linear layer in the form that a weight format multiplies with.

use std::borrow::Cow;
use std::ops::Range;

use super::super::cpu::{Isa, Kernel};
use super::super::lanes::Lanes;
use super::super::matrix_unit::{SIDE, STEP};
use super::super::norm::{Norm, norm_row};
use super::super::pack::{GROUP, IntegerLayout};
use super::super::pool::Pool;
use super::super::split::{SharedMatrix, for_each_chunk};
use super::Input;

/// Rows in a task.
const ROWS: usize = 4;

/// Rows as 8-bit integers, `x = scale · value`, with one scale for each block of columns.
pub(super) struct QuantizedRows {
    /// `[rows, stride]`, from -127 to 127; what fills up columns and rows for whole tiles is zero.
    values: Vec<i8>,
    /// Bytes from one row to the next: an odd number of cache lines, so that rows lie in different sets of a cache.
    stride: usize,
    /// `[rows, blocks]`. NaN or infinite when an activation is, so that results are too.
    scales: Vec<f32>,
    /// `[rows, groups]`: the sum of each group's values.
    sums: Vec<i32>,
    groups: usize,
    blocks: usize,
}

impl QuantizedRows {
    /// Quantises rows for the weights of a layout.
    pub fn new<F: IntegerLayout>(isa: Isa, pool: &Pool, input: &Input<'_>, cols: usize) -> Self {
        let (groups, blocks) = (cols.div_ceil(GROUP), cols.div_ceil(F::BLOCK));
        let rows = input.rows;
        let stride = ((groups * GROUP).div_ceil(STEP) | 1) * STEP;
        let mut quantized = Self {
            values: vec![0; rows.next_multiple_of(SIDE) * stride],
            stride,
            scales: vec![0.0; rows * blocks],
            sums: vec![0; rows * groups],
            groups,
            blocks,
        };
        let values = SharedMatrix::new(&mut quantized.values, stride);
        let scales = SharedMatrix::new(&mut quantized.scales, blocks);
        let sums = SharedMatrix::new(&mut quantized.sums, groups);
        let tasks = if cols == 0 { 0 } else { rows.div_ceil(ROWS) };
        pool.run(tasks, |task| {
            let rows = task * ROWS..((task + 1) * ROWS).min(rows);
            isa.run(QuantizeRows {
                x: &input.x[rows.start * cols..rows.end * cols],
                norm: input.norm,
                cols,
                block: F::BLOCK,
                stride,
                // SAFETY: tasks have rows of their own.
                values: unsafe { values.rows(rows.clone()) },
                // SAFETY: as above.
                scales: unsafe { scales.rows(rows.clone()) },
                // SAFETY: as above.
                sums: unsafe { sums.rows(rows) },
            });
        });
        quantized
    }

    /// Values of a row in groups of 32, four neighbouring columns each.
    #[inline(always)]
    pub fn quads(&self, row: usize, groups: Range<usize>) -> &[[i8; 4]] {
        let start = row * self.stride;
        self.values[start + groups.start * GROUP..start + groups.end * GROUP].as_chunks().0
    }

    /// Where [`SIDE`] rows from `row` on have a group, and the bytes from one row to the next.
    ///
    /// # Panics
    /// When there are not as many rows, zeros at the end included.
    #[inline(always)]
    pub fn tile(&self, row: usize, group: usize) -> (*const i8, usize) {
        (self.values[row * self.stride + group * GROUP..(row + SIDE) * self.stride].as_ptr(), self.stride)
    }

    /// The scale of a row in a block.
    #[inline(always)]
    pub fn scale(&self, row: usize, block: usize) -> f32 {
        self.scales[row * self.blocks + block]
    }

    /// The sums of a row's groups.
    #[inline(always)]
    pub fn sums(&self, row: usize, groups: Range<usize>) -> &[i32] {
        &self.sums[row * self.groups + groups.start..row * self.groups + groups.end]
    }
}

/// Rows that are quantised by one task.
struct QuantizeRows<'a> {
    x: &'a [f32],
    norm: Option<Norm<'a>>,
    cols: usize,
    block: usize,
    stride: usize,
    values: &'a mut [i8],
    scales: &'a mut [f32],
    sums: &'a mut [i32],
}

impl Kernel for QuantizeRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let (groups, blocks) = (self.cols.div_ceil(GROUP), self.cols.div_ceil(self.block));
        let mut padded = vec![0.0; groups * GROUP];
        for (row, x) in self.x.chunks_exact(self.cols).enumerate() {
            match &self.norm {
                Some(norm) => norm_row::<V>(x, norm, &mut padded[..self.cols]),
                None => padded[..self.cols].copy_from_slice(x),
            }
            let values = &mut self.values[row * self.stride..][..groups * GROUP];
            let scales = &mut self.scales[row * blocks..(row + 1) * blocks];
            let pieces = padded.chunks(self.block).zip(values.chunks_mut(self.block)).zip(scales);
            for ((x, values), scale) in pieces {
                *scale = quantize_block(x.as_chunks().0, values.as_chunks_mut().0);
            }
            let sums = &mut self.sums[row * groups..(row + 1) * groups];
            for (sum, values) in sums.iter_mut().zip(values.as_chunks::<GROUP>().0) {
                *sum = values.iter().map(|&value| i32::from(value)).sum();
            }
        }
    }
}

/// Rounds a block and returns its scale.
#[inline(always)]
fn quantize_block(x: &[[f32; GROUP]], values: &mut [[i8; GROUP]]) -> f32 {
    // Without their sign, floats are ordered like their bits, and NaN is the largest.
    let mut largest = [0; GROUP];
    for x in x {
        for (largest, x) in largest.iter_mut().zip(x) {
            *largest = x.abs().to_bits().max(*largest);
        }
    }
    let scale = f32::from_bits(largest.iter().fold(0, |a, &b| a.max(b))) / 127.0;
    // A block this small is as good as zero; its inverse would be infinite.
    let inverse = if scale < 1e-36 { 0.0 } else { 1.0 / scale };
    for (values, x) in values.iter_mut().zip(x) {
        for (value, x) in values.iter_mut().zip(x) {
            *value = round_to_byte(x * inverse);
        }
    }
    scale
}

/// The nearest integer, ties to even, of a number from -127 to 127; any for others.
#[inline(always)]
fn round_to_byte(x: f32) -> i8 {
    // The integer is in the lowest bits of the sum.
    const SHIFT: f32 = 12_582_912.0; // 1.5 * 2^23: one unit in the last place is 1
    (x + SHIFT).to_bits() as i8
}

/// Rows as floats, normed where that was asked for.
pub(super) fn float_rows<'a>(isa: Isa, pool: &Pool, input: &Input<'a>, cols: usize) -> Cow<'a, [f32]> {
    let Some(norm) = input.norm else { return Cow::Borrowed(input.x) };
    let mut normed = vec![0.0; input.x.len()];
    for_each_chunk(pool, &mut normed, ROWS * cols, |index, y| {
        let start = index * ROWS * cols;
        isa.run(NormRows { x: &input.x[start..start + y.len()], norm, y });
    });
    Cow::Owned(normed)
}

struct NormRows<'a> {
    x: &'a [f32],
    norm: Norm<'a>,
    y: &'a mut [f32],
}

impl Kernel for NormRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let width = self.norm.weight.len();
        for (x, y) in self.x.chunks_exact(width).zip(self.y.chunks_exact_mut(width)) {
            norm_row::<V>(x, &self.norm, y);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::pack::round;
    use super::*;

    #[test]
    fn bytes_are_rounded_like_floats() {
        for i in -127_000..=127_000 {
            let x = i as f32 * 1e-3;
            assert_eq!(f32::from(round_to_byte(x)), round(x), "{x}");
        }
    }
}
