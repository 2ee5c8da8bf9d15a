//! Several linear layers of one shape, each over rows of its own.

use super::super::isa::Isa;
use super::super::lanes::LANES;
use super::super::pack::PackedMatrix;
use super::super::pool::Pool;
use super::super::profile::{self, Work};
use super::super::split::SharedMatrix;
use super::{Epilogue, Input, Layer, Rows, Then, run};

/// Batched matrix product: the rows of each of `count` parts of `x` times the matrix of the same index,
/// transposed. `w` stacks the matrices, the rows of one following those of the previous one.
///
/// A row's result is that of [`linear`](super::linear) with its matrix, bit for bit.
///
/// # Shapes
/// - `x`: `[count, rows, in]`, `w`: `[count * out, in]`; `y`: `[count, rows, out]`, overwritten
///
/// # Panics
/// When a length does not fit.
///
/// # Examples
/// ```
/// use lm_kernels::{PackedMatrix, Pool, Source, WeightFormat, host};
/// // Two matrices of 1 by 2: [1, 2] and [3, 4].
/// let w = PackedMatrix::pack(WeightFormat::F32, 2, 2, Source::F32(&[1.0, 2.0, 3.0, 4.0]))?;
/// let mut y = [0.0; 2];
/// host::batched_linear(Pool::global(), &w, 2, &[10.0, 1.0, 10.0, 1.0], &mut y);
/// assert_eq!(y, [12.0, 34.0]);
/// # Ok::<(), lm_kernels::Error>(())
/// ```
pub fn batched_linear(pool: &Pool, w: &PackedMatrix, count: usize, x: &[f32], y: &mut [f32]) {
    let _span = profile::span(Work::Linear);
    batched_linear_on(Isa::current(), pool, w, count, x, y);
}

/// [`batched_linear`] on one instruction set.
pub(super) fn batched_linear_on(
    isa: Isa,
    pool: &Pool,
    w: &PackedMatrix,
    count: usize,
    x: &[f32],
    y: &mut [f32],
) {
    assert!(count > 0 && w.rows().is_multiple_of(count), "{} rows of {count} matrices", w.rows());
    let width = w.rows() / count;
    let all_rows = x.len().checked_div(w.cols()).unwrap_or(0);
    assert!(all_rows.is_multiple_of(count), "{all_rows} rows for {count} matrices");
    assert_eq!(x.len(), all_rows * w.cols(), "activations are [{all_rows}, {}]", w.cols());
    assert_eq!(y.len(), all_rows * width, "results are [{all_rows}, {width}]");
    let rows = all_rows / count;
    let input = Rows::of(isa, pool, &Input { x, rows: all_rows, norm: None }, std::iter::once(w));
    let y = SharedMatrix::new(y, width);
    let matrices: Vec<_> = (0..count).map(|index| matrix_of(w, index, width)).collect();
    let layers = matrices.iter().enumerate().map(|(index, w)| Layer {
        w,
        skip: index * width % LANES,
        width,
        epilogue: Epilogue::Store { bias: None, then: Then::Store },
        rows: index * rows..(index + 1) * rows,
        y: &y,
    });
    run(isa, pool, &input, &layers.collect::<Vec<_>>());
}

/// The tiles of `stack` that hold the matrix of this index, of `rows` rows; the first and the last may hold
/// rows of its neighbours too.
pub(in crate::host) fn matrix_of(stack: &PackedMatrix, index: usize, rows: usize) -> PackedMatrix {
    stack.row_range(index * rows / LANES * LANES..(index + 1) * rows)
}
