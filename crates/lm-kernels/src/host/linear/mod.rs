//! Linear layers: `y = x · Wᵀ`.
//!
//! One inner loop serves all formats ([`TileGroup`]); a format says how one unit of 16 rows is multiplied with the
//! activations ([`Weights`]). Each output is one chain of multiply-adds over the columns (or blocks), in order: neither the
//! number of activation rows nor the threads nor the vector width can change its bits.

mod activations;
#[cfg(test)]
mod tests;
mod weights;

use super::cpu::{Isa, Kernel};
use super::lanes::{LANES, Lanes};
use super::pack::{PackedMatrix, Units};
use super::pool::Pool;
use super::split::{Block, for_each_column_block};
use activations::panels;
use weights::Weights;

/// Activation rows that share one pass over a tile of weights. Eight sums of 16 lanes hide the latency of the multiply-add.
const PANEL: usize = 8;

/// Tiles of 16 weight rows in a task: enough to pay for handing it out.
const TILES: usize = 4;

/// Multiplies `m` rows of activations with a packed weight: `y[i, r] = Σ x[i, c] · w[r, c]`.
///
/// Float weights are multiplied as they are and summed in single precision, column by column. For Q8 and Q4 the activations
/// are rounded to 8-bit integers with one scale for each 32 columns; a block's products are summed exactly, then scaled and
/// added block by block. A row's result has the same bits for every `m`, number of threads and [`Isa`].
///
/// # Shapes
/// - `x`: `[m, cols]`
/// - `y`: `[m, rows]`, overwritten
///
/// # Panics
/// When a length does not fit.
///
/// # Examples
/// ```
/// use lm_kernels::{PackedMatrix, Pool, Source, WeightFormat, host};
/// let w = PackedMatrix::pack(WeightFormat::F32, 2, 2, Source::F32(&[1.0, 2.0, 3.0, 4.0]))?;
/// let mut y = [0.0; 2];
/// host::linear(Pool::global(), &w, &[10.0, 1.0], 1, &mut y);
/// assert_eq!(y, [12.0, 34.0]);
/// # Ok::<(), lm_kernels::Error>(())
/// ```
pub fn linear(pool: &Pool, w: &PackedMatrix, x: &[f32], m: usize, y: &mut [f32]) {
    linear_on(Isa::current(), pool, w, x, m, y);
}

/// [`linear`] with the code for one instruction set.
fn linear_on(isa: Isa, pool: &Pool, w: &PackedMatrix, x: &[f32], m: usize, y: &mut [f32]) {
    assert_eq!(x.len(), m * w.cols(), "activations are [{m}, {}]", w.cols());
    assert_eq!(y.len(), m * w.rows(), "results are [{m}, {}]", w.rows());
    if y.is_empty() {
        return;
    }
    let layer = Layer { isa, pool, cols: w.cols(), rows: w.rows(), x, m };
    match w.units() {
        Units::F32(units) => layer.run(units, y),
        Units::F16(units) => layer.run(units, y),
        Units::Bf16(units) => layer.run(units, y),
        Units::Q8(units) => layer.run(units, y),
        Units::Q4(units) => layer.run(units, y),
    }
}

/// One call, but for the format of the weights.
struct Layer<'a> {
    isa: Isa,
    pool: &'a Pool,
    cols: usize,
    rows: usize,
    x: &'a [f32],
    m: usize,
}

impl Layer<'_> {
    fn run<W: Weights>(&self, units: &[W], y: &mut [f32]) {
        if self.m == 1 { self.run_panels::<W, 1>(units, y) } else { self.run_panels::<W, PANEL>(units, y) }
    }

    fn run_panels<W: Weights, const M: usize>(&self, units: &[W], y: &mut [f32]) {
        let depth = self.cols.div_ceil(W::COLUMNS);
        let x = panels::<W::Activation, M>(self.isa, self.pool, self.x, self.m, self.cols);
        for_each_column_block(self.pool, y, self.rows, TILES * LANES, |y| {
            let first = y.columns().start / LANES * depth;
            let units = &units[first..first + y.columns().len().div_ceil(LANES) * depth];
            self.isa.run(TileGroup { units, depth, x: &x, m: self.m, y });
        });
    }
}

/// A few tiles of weights times all activations.
struct TileGroup<'a, W: Weights, const M: usize> {
    units: &'a [W],
    /// Units of a tile.
    depth: usize,
    x: &'a [[W::Activation; M]],
    m: usize,
    y: Block<'a, f32>,
}

impl<W: Weights, const M: usize> Kernel for TileGroup<'_, W, M> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(mut self) {
        for panel in 0..self.m.div_ceil(M) {
            let x = &self.x[panel * self.depth..(panel + 1) * self.depth];
            for tile in 0..self.y.columns().len().div_ceil(LANES) {
                let units = &self.units[tile * self.depth..(tile + 1) * self.depth];
                let sums = multiply_tile::<V, W, M>(units, x);
                for (row, sums) in (panel * M..self.m).zip(sums) {
                    let y = &mut self.y.row(row)[tile * LANES..];
                    match y.first_chunk_mut() {
                        Some(y) => sums.store(y),
                        None => {
                            let mut all = [0.0; LANES];
                            sums.store(&mut all);
                            y.copy_from_slice(&all[..y.len()]);
                        }
                    }
                }
            }
        }
    }
}

/// Sixteen rows of weights times `M` rows of activations.
#[inline(always)]
fn multiply_tile<V: Lanes, W: Weights, const M: usize>(units: &[W], x: &[[W::Activation; M]]) -> [V; M] {
    let mut sums = [V::splat(0.0); M];
    for (unit, x) in units.iter().zip(x) {
        unit.multiply(x, &mut sums);
    }
    sums
}
