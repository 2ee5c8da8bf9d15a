//! Partition of linear layers into tasks for the pool, and the epilogue of each pair of tiles.

use std::cell::RefCell;
use std::ops::Range;

use super::super::activation::Activation;
use super::super::cpu::{Isa, Kernel};
use super::super::lanes::{LANES, Lanes};
use super::super::pack::PackedMatrix;
use super::super::pool::Pool;
use super::super::split::{Block, SharedMatrix};
use super::Rows;
use super::multiply::multiply_pair;

/// Activation rows per task: their sums, 64 KiB, stay in the L2 cache.
const ROWS: usize = 512;

/// Bytes of weights per task, enough to amortise scheduling.
const TASK_BYTES: usize = 64 << 10;

/// Columns of a pair of tiles.
const PAIR: usize = 2 * LANES;

/// A linear layer over a range of rows, of one or two weights.
pub(in crate::host) struct Layer<'a> {
    pub weights: [&'a PackedMatrix; 2],
    pub tiles: Tiles,
    /// Number of leading rows of the first tile to skip, fewer than 16.
    pub skip: usize,
    /// Number of weight rows after those skipped: columns of `y`.
    pub width: usize,
    pub epilogue: Epilogue<'a>,
    /// Rows of the input and of `y`.
    pub rows: Range<usize>,
    pub y: &'a SharedMatrix<'a, f32>,
}

/// Source of the two tiles of a pair.
#[derive(Clone, Copy)]
pub(in crate::host) enum Tiles {
    /// Consecutive tiles of one weight, given twice.
    Shared,
    /// The tiles at the same index of each weight.
    OfEach,
}

impl Tiles {
    /// Distance between pairs, in tiles of the result.
    fn step(self) -> usize {
        match self {
            Tiles::Shared => 2,
            Tiles::OfEach => 1,
        }
    }
}

/// Epilogue of a pair's products.
#[derive(Clone, Copy)]
pub(in crate::host) enum Epilogue<'a> {
    /// Writes both tiles to columns of `y`, after adding the bias.
    Store { bias: Option<&'a [f32]>, then: Then },
    /// Gates the second tile by the first, after adding the biases.
    Gate { activation: Activation, biases: Option<[&'a [f32]; 2]> },
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
    /// Number of tiles of the result.
    fn num_tiles(&self) -> usize {
        (self.skip + self.width).div_ceil(LANES)
    }

    /// The columns of the result that a pair computes, and the number of its leading products to skip.
    #[inline(always)]
    fn columns(&self, pair: usize) -> (Range<usize>, usize) {
        let (start, products) = (pair * self.tiles.step() * LANES, self.tiles.step() * LANES);
        let end = (start + products).min(self.skip + self.width) - self.skip;
        let skip = self.skip.saturating_sub(start);
        (start + skip - self.skip..end, skip)
    }

    fn num_pairs(&self) -> usize {
        self.num_tiles().div_ceil(self.tiles.step())
    }

    /// Pairs per task.
    fn pairs_of_task(&self) -> usize {
        let bytes: usize = self.weights.iter().map(|w| w.bytes()).sum();
        (TASK_BYTES * self.num_tiles() / bytes.max(1)).clamp(1, self.num_pairs().max(1))
    }

    /// The tiles of a pair; an unpaired last tile is taken twice.
    #[inline(always)]
    fn pair(&self, pair: usize) -> [(&'a PackedMatrix, usize); 2] {
        let first = pair * self.tiles.step();
        let second = match self.tiles {
            Tiles::Shared => (first + 1).min(self.num_tiles() - 1),
            Tiles::OfEach => first,
        };
        [(self.weights[0], first), (self.weights[1], second)]
    }
}

/// Distributes the pairs of all layers over tasks, with the rows in pieces.
pub(in crate::host) fn run(isa: Isa, pool: &Pool, x: &Rows<'_>, layers: &[Layer<'_>]) {
    let pieces = layers.iter().map(|layer| layer.rows.len().div_ceil(ROWS)).max().unwrap_or(0);
    let mut tasks: Vec<(&Layer<'_>, Range<usize>, Range<usize>)> = Vec::new();
    for piece in 0..pieces {
        for layer in layers {
            let Range { start, end } = layer.rows;
            let rows = start + piece * ROWS..end.min(start + (piece + 1) * ROWS);
            if !rows.is_empty() {
                let (pairs, step) = (layer.num_pairs(), layer.pairs_of_task());
                let parts = (0..pairs).step_by(step).map(|pair| pair..(pair + step).min(pairs));
                tasks.extend(parts.map(|pairs| (layer, pairs, rows.clone())));
            }
        }
    }
    pool.run(tasks.len(), |index| {
        let (layer, pairs, rows) = &tasks[index];
        SUMS.with_borrow_mut(|sums| {
            sums.resize(rows.len().max(sums.len()), [[0.0; LANES]; 2]);
            let out = &mut sums[..rows.len()];
            isa.run(Task { layer, pairs: pairs.clone(), x, rows: rows.clone(), out });
        });
    });
}

thread_local! {
    /// Scratch space for the products of a pair, `[rows, 2, 16]`.
    static SUMS: RefCell<Vec<[[f32; LANES]; 2]>> = const { RefCell::new(Vec::new()) };
}

/// Some pairs of a layer times some rows.
struct Task<'a> {
    layer: &'a Layer<'a>,
    pairs: Range<usize>,
    x: &'a Rows<'a>,
    rows: Range<usize>,
    out: &'a mut [[[f32; LANES]; 2]],
}

impl Kernel for Task<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let Self { layer, pairs, x, rows, out } = self;
        for pair in pairs {
            multiply_pair::<V>(layer.pair(pair), x, rows.clone(), out);
            let (columns, skip) = layer.columns(pair);
            // SAFETY: each task has distinct pairs, and so columns, or rows.
            let y = unsafe { layer.y.block(rows.clone(), columns) };
            match layer.epilogue {
                Epilogue::Store { bias, then } => store(y, out, skip, bias, then),
                Epilogue::Gate { activation, biases } => gate::<V>(y, out, skip, activation, biases),
            }
        }
    }
}

/// Writes the products of a pair, without the first `skip`, to their columns of `y`.
#[inline(always)]
fn store(
    mut y: Block<'_, f32>,
    products: &[[[f32; LANES]; 2]],
    skip: usize,
    bias: Option<&[f32]>,
    then: Then,
) {
    let bias = bias.map(|bias| &bias[y.columns()]);
    for (row, products) in products.iter().enumerate() {
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
fn gate<V: Lanes>(
    mut y: Block<'_, f32>,
    products: &[[[f32; LANES]; 2]],
    skip: usize,
    activation: Activation,
    biases: Option<[&[f32]; 2]>,
) {
    let columns = y.columns();
    let mut added = [[0.0; LANES]; 2];
    if let Some(biases) = biases {
        for (added, bias) in added.iter_mut().zip(biases) {
            added[skip..skip + columns.len()].copy_from_slice(&bias[columns.clone()]);
        }
    }
    for (row, products) in products.iter().enumerate() {
        let mut products = *products;
        if biases.is_some() {
            for (products, added) in products.as_flattened_mut().iter_mut().zip(added.as_flattened()) {
                *products += added;
            }
        }
        let [gate, up] = products;
        let gated = activation.gate_lanes(&gate, &up);
        y.row(row).copy_from_slice(&gated[skip..skip + columns.len()]);
    }
}
