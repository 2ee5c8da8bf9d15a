//! Partition of linear layers into tasks for the pool, and the epilogue of each pair of tiles.

use std::cell::RefCell;
use std::ops::Range;

use super::super::activation::Activation;
use super::super::isa::Isa;
use super::super::lanes::{Kernel, LANES, Lanes, prefetch_ahead};
use super::super::pack::PackedMatrix;
use super::super::pool::Pool;
use super::super::split::{Block, SharedMatrix};
use super::multiply::multiply;
use super::{Rows, row_bytes};

/// Maximum of activation rows per task, and products of a weight at a time: their sums, 64 KiB, stay in the
/// L2 cache.
const ROWS: usize = 512;

/// Bytes of a task's activations that stay in the L2 cache, half of the smallest on processors with AVX2.
const L2_BYTES: usize = 256 << 10;

/// Minimum of activation rows per task if there are as many: fewer would read the weights too often.
const MIN_ROWS: usize = 64;

/// Bytes of each weight per task, enough to amortise scheduling.
const TASK_BYTES: usize = 64 << 10;

/// Columns of a pair of tiles.
const PAIR: usize = 2 * LANES;

/// Number of rows of the result that are prefetched ahead of the written row. A pair's columns are two lines
/// of each row, a whole row apart: writes in succession would each wait for the memory.
const AHEAD: usize = 8;

/// The products of a row and a pair of tiles.
type Sums = [[f32; LANES]; 2];

/// A linear layer over a range of rows, of one weight or of two.
pub(in crate::host) struct Layer<'a> {
    /// The weight; of two, the gate's.
    pub w: &'a PackedMatrix,
    /// Number of leading rows of the first tile to skip, fewer than 16.
    pub skip: usize,
    /// Number of weight rows after those skipped: columns of `y`.
    pub width: usize,
    pub epilogue: Epilogue<'a>,
    /// Rows of the input and of `y`.
    pub rows: Range<usize>,
    pub y: &'a SharedMatrix<'a, f32>,
}

/// Epilogue of a pair's products.
#[derive(Clone, Copy)]
pub(in crate::host) enum Epilogue<'a> {
    /// Writes them to columns of `y`, after adding the bias.
    Store { bias: Option<&'a [f32]>, then: Then },
    /// Gates the products of `up` by them, after adding the biases.
    Gate { up: &'a PackedMatrix, activation: Activation, biases: Option<[&'a [f32]; 2]> },
}

/// Use of sums in a linear layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Then {
    /// They replace the old contents of the result.
    Store,
    /// They are added to the old contents.
    Add,
    /// Their activations replace the old contents; activations that gate a second number gate 1.
    Activate(Activation),
}

impl<'a> Layer<'a> {
    /// The weights, the gate's first.
    #[inline(always)]
    fn weights(&self) -> impl Iterator<Item = &'a PackedMatrix> {
        let up = match self.epilogue {
            Epilogue::Store { .. } => None,
            Epilogue::Gate { up, .. } => Some(up),
        };
        std::iter::once(self.w).chain(up)
    }

    fn num_tiles(&self) -> usize {
        (self.skip + self.width).div_ceil(LANES)
    }

    fn num_pairs(&self) -> usize {
        self.num_tiles().div_ceil(2)
    }

    /// The tiles of a pair; an unpaired last tile is taken twice.
    #[inline(always)]
    fn tiles(&self, pair: usize) -> [usize; 2] {
        [2 * pair, (2 * pair + 1).min(self.num_tiles() - 1)]
    }

    /// The columns of the result that a pair computes, and the number of its leading products to skip.
    #[inline(always)]
    fn columns(&self, pair: usize) -> (Range<usize>, usize) {
        let start = pair * PAIR;
        let end = (start + PAIR).min(self.skip + self.width) - self.skip;
        let skip = self.skip.saturating_sub(start);
        (start + skip - self.skip..end, skip)
    }

    /// Pairs per task.
    fn pairs_of_task(&self) -> usize {
        let pairs = self.num_pairs().max(1);
        (TASK_BYTES * pairs / self.w.bytes().max(1)).clamp(1, pairs)
    }
}

/// Distributes the pairs of all layers over tasks, with the rows in pieces.
pub(in crate::host) fn run(isa: Isa, pool: &Pool, x: &Rows<'_>, layers: &[Layer<'_>]) {
    let rows_of_piece = layers.iter().map(|layer| rows_of_task(isa, layer.w)).min().unwrap_or(ROWS);
    let pieces = layers.iter().map(|layer| layer.rows.len().div_ceil(rows_of_piece)).max().unwrap_or(0);
    let mut tasks: Vec<(&Layer<'_>, Range<usize>, Range<usize>)> = Vec::new();
    for piece in 0..pieces {
        for layer in layers {
            let Range { start, end } = layer.rows;
            let rows = start + piece * rows_of_piece..end.min(start + (piece + 1) * rows_of_piece);
            if !rows.is_empty() {
                let (pairs, step) = (layer.num_pairs(), layer.pairs_of_task());
                let parts = (0..pairs).step_by(step).map(|pair| pair..(pair + step).min(pairs));
                tasks.extend(parts.map(|pairs| (layer, pairs, rows.clone())));
            }
        }
    }
    pool.run(tasks.len(), |index| {
        let (layer, pairs, rows) = &tasks[index];
        let together = (ROWS / rows.len()).clamp(1, pairs.len());
        SUMS.with_borrow_mut(|sums| {
            let len = layer.weights().count() * together * rows.len();
            sums.resize(len.max(sums.len()), [[0.0; LANES]; 2]);
            let sums = &mut sums[..len];
            isa.run(Task { layer, pairs: pairs.clone(), together, x, rows: rows.clone(), sums });
        });
    });
}

/// Maximum of activation rows per task. The paths of AVX2 read a row for each pair of tiles or tile anew,
/// with four rows at a time, so that the rows should stay in the L2 cache.
pub(super) fn rows_of_task(isa: Isa, w: &PackedMatrix) -> usize {
    if !matches!(isa, Isa::Avx2 | Isa::AvxVnni) {
        return ROWS;
    }
    (L2_BYTES / row_bytes(w).max(1)).clamp(MIN_ROWS, ROWS)
}

thread_local! {
    /// Scratch space for products, `[weights, pairs, rows, 2, 16]`.
    static SUMS: RefCell<Vec<Sums>> = const { RefCell::new(Vec::new()) };
}

/// Some pairs of a layer times some rows.
struct Task<'a> {
    layer: &'a Layer<'a>,
    pairs: Range<usize>,
    /// Maximum pairs at a time: with few rows a weight is read sequentially before the next one.
    together: usize,
    x: &'a Rows<'a>,
    rows: Range<usize>,
    sums: &'a mut [Sums],
}

impl Kernel for Task<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let Self { layer, pairs, together, x, rows, sums } = self;
        let of_weight = together * rows.len();
        for start in pairs.clone().step_by(together) {
            let pairs = start..pairs.end.min(start + together);
            for (w, sums) in layer.weights().zip(sums.chunks_exact_mut(of_weight)) {
                for (pair, sums) in pairs.clone().zip(sums.chunks_exact_mut(rows.len())) {
                    multiply::<V>(w, layer.tiles(pair), x, rows.clone(), sums);
                }
            }
            let (sums, ups) = sums.split_at(of_weight);
            for (index, pair) in pairs.enumerate() {
                let (columns, skip) = layer.columns(pair);
                // SAFETY: each task has distinct pairs, and so columns, or rows.
                let y = unsafe { layer.y.block(rows.clone(), columns) };
                let places = index * rows.len()..(index + 1) * rows.len();
                let sums = &sums[places.clone()];
                match layer.epilogue {
                    Epilogue::Store { bias, then } => store(y, sums, skip, bias, then),
                    Epilogue::Gate { activation, biases, .. } => {
                        gate(y, [sums, &ups[places]], skip, activation, biases)
                    }
                }
            }
        }
    }
}

/// Writes the products of a pair, without the first `skip`, to their columns of `y`.
#[inline(always)]
fn store(mut y: Block<'_, f32>, products: &[Sums], skip: usize, bias: Option<&[f32]>, then: Then) {
    let bias = bias.map(|bias| &bias[y.columns()]);
    for (row, products) in products.iter().enumerate() {
        prefetch_row(&mut y, row + AHEAD);
        let y = y.row(row);
        let mut products: [f32; PAIR] = bytemuck::cast(*products);
        if let Some(bias) = bias {
            products[skip..].iter_mut().zip(bias).for_each(|(product, bias)| *product += bias);
        }
        if let Then::Activate(activation) = then {
            for products in products.as_chunks_mut().0 {
                *products = activation.gate_lanes(products, &[1.0; LANES]);
            }
        }
        match y.as_mut_array::<PAIR>() {
            Some(y) if then == Then::Add => y.iter_mut().zip(products).for_each(|(y, product)| *y += product),
            Some(y) => *y = products,
            None => {
                for (y, &product) in y.iter_mut().zip(&products[skip..]) {
                    *y = if then == Then::Add { *y + product } else { product };
                }
            }
        }
    }
}

/// Writes the gated products of a pair, without the first `skip`, to their columns of `y`.
#[inline(always)]
fn gate(
    mut y: Block<'_, f32>,
    products: [&[Sums]; 2],
    skip: usize,
    activation: Activation,
    biases: Option<[&[f32]; 2]>,
) {
    let columns = y.columns();
    let biases = biases.map(|biases| biases.map(|bias| &bias[columns.clone()]));
    for (row, (gate, up)) in products[0].iter().zip(products[1]).enumerate() {
        prefetch_row(&mut y, row + AHEAD);
        let mut products = [*gate, *up];
        if let Some(biases) = biases {
            for (products, bias) in products.iter_mut().zip(biases) {
                let products = &mut products.as_flattened_mut()[skip..];
                products.iter_mut().zip(bias).for_each(|(product, bias)| *product += bias);
            }
        }
        let [gate, up] = products;
        let gated = [activation.gate_lanes(&gate[0], &up[0]), activation.gate_lanes(&gate[1], &up[1])];
        y.row(row).copy_from_slice(&gated.as_flattened()[skip..skip + columns.len()]);
    }
}

/// Prefetches the columns of a pair in a row, if there is one.
#[inline(always)]
fn prefetch_row(y: &mut Block<'_, f32>, row: usize) {
    if row < y.rows() {
        y.row(row).iter().step_by(LANES).for_each(|place| prefetch_ahead(place, 0));
    }
}
