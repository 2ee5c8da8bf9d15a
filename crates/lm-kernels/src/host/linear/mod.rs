//! Linear layers: `y = x · Wᵀ`, several of them over the same rows, with fused prologue (norm) and epilogue
//! (bias, add, gating).
//!
//! The unit of work is two tiles of 16 weight rows times some activation rows ([`Products`]): 32 columns of a
//! result or, in a gated layer, 16 of each half. [`integer`] and [`float`] define the arithmetic of a format.
//! Results do not depend on the number of activation rows, the threads or the vector width.

mod activations;
mod blocks;
mod float;
mod integer;
mod multiply;
mod panels;
mod q4;
mod q8;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;

use super::activation::Activation;
use super::cpu::{Isa, Kernel};
use super::lanes::{LANES, Lanes};
use super::norm::Norm;
use super::pack::{IntegerLayout, PackedMatrix, Q4, Q8, WeightFormat};
use super::pool::Pool;
use super::split::{Block, SharedMatrix};
use activations::{QuantizedRows, float_rows, gathered_floats};
use multiply::multiply_pair;

/// Activation rows per task: their sums, 64 KiB, stay in the L2 cache.
const ROWS: usize = 512;

/// Bytes of weights per task, enough to amortise scheduling.
const TASK_BYTES: usize = 64 << 10;

/// Columns of a pair of tiles.
const PAIR: usize = 2 * LANES;

/// Input rows of linear layers.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// `[rows, cols]`.
    pub x: &'a [f32],
    /// Number of rows.
    pub rows: usize,
    /// RMSNorm applied to each row before it is multiplied; `x` itself is not changed.
    pub norm: Option<Norm<'a>>,
}

/// One of several linear layers over the same rows.
#[derive(Debug)]
pub struct Output<'a> {
    /// The weight, `[out, cols]`.
    pub w: &'a PackedMatrix,
    /// Bias added to each row of products: `[out]`.
    pub bias: Option<&'a [f32]>,
    /// True to add the result to `y`, false to overwrite it.
    pub add: bool,
    /// `[rows, out]`.
    pub y: &'a mut [f32],
}

/// Multiplies `m` rows of activations by a packed weight: `y[i, r] = Σ x[i, c] · w[r, c]`.
///
/// Float weights are multiplied as they are and summed in single precision, column by column. For all other formats
/// the activations are quantised to 8-bit integers with one scale per 64 or 256 columns; a block's products are
/// summed exactly, then scaled and added block by block. A row's result is bit-identical for every `m`, number of
/// threads and [`Isa`].
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
    linears(pool, Input { x, rows: m, norm: None }, &mut [Output { w, bias: None, add: false, y }]);
}

/// [`linear`] for several weights over the same rows, which are normalised and quantised once.
///
/// Bit-identical to [`rms_norm`](super::rms_norm), [`linear`] and additions in sequence: first the bias, then
/// the old contents of `y`.
///
/// # Panics
/// When a length does not fit.
pub fn linears(pool: &Pool, input: Input<'_>, outputs: &mut [Output<'_>]) {
    linears_on(Isa::current(), pool, input, outputs);
}

/// [`linears`] on one instruction set.
fn linears_on(isa: Isa, pool: &Pool, input: Input<'_>, outputs: &mut [Output<'_>]) {
    for output in &*outputs {
        check(&input, output.w);
        assert_eq!(
            output.y.len(),
            input.rows * output.w.rows(),
            "results are [{}, {}]",
            input.rows,
            output.w.rows()
        );
        assert!(output.bias.is_none_or(|bias| bias.len() == output.w.rows()), "a bias for each result");
    }
    let x = Rows::of(isa, pool, &input, outputs.iter().map(|output| output.w));
    let results: Vec<_> = outputs
        .iter_mut()
        .map(|Output { w, bias, add, y }| {
            (*w, Epilogue::Store { bias: *bias, add: *add }, SharedMatrix::new(y, w.rows()))
        })
        .collect();
    let layers: Vec<_> = results
        .iter()
        .map(|&(w, epilogue, ref y)| Layer {
            weights: [w; 2],
            tiles: Tiles::Shared,
            skip: 0,
            width: w.rows(),
            epilogue,
            rows: 0..input.rows,
            y,
        })
        .collect();
    run(isa, pool, &x, &layers);
}

/// Gate and up projections of a gated MLP: `y = activation(x · Wᵀ of the gate) · (x · Wᵀ of up)`, elementwise.
///
/// Bit-identical to [`linears`] and the activation in sequence.
///
/// # Shapes
/// - `y`: `[rows, out]`, overwritten; both weights are `[out, cols]`
///
/// # Panics
/// When a length does not fit, or the weights differ in shape.
///
/// # Source
/// GLU Variants Improve Transformer, arXiv 2002.05202.
pub fn gated(
    pool: &Pool,
    input: Input<'_>,
    gate: &PackedMatrix,
    up: &PackedMatrix,
    activation: Activation,
    y: &mut [f32],
) {
    gated_on(Isa::current(), pool, input, [gate, up], activation, y);
}

/// [`gated`] on one instruction set.
fn gated_on(
    isa: Isa,
    pool: &Pool,
    input: Input<'_>,
    weights: [&PackedMatrix; 2],
    activation: Activation,
    y: &mut [f32],
) {
    weights.iter().for_each(|w| check(&input, w));
    let out = weights[0].rows();
    assert_eq!(out, weights[1].rows(), "gate and up give as many results");
    assert_eq!(y.len(), input.rows * out, "results are [{}, {out}]", input.rows);
    let x = Rows::of(isa, pool, &input, weights.into_iter());
    let y = SharedMatrix::new(y, out);
    let epilogue = Epilogue::Gate { activation, biases: None };
    let (tiles, rows) = (Tiles::OfEach, 0..input.rows);
    run(isa, pool, &x, &[Layer { weights, tiles, skip: 0, width: out, epilogue, rows, y: &y }]);
}

fn check(input: &Input<'_>, w: &PackedMatrix) {
    assert_eq!(input.x.len(), input.rows * w.cols(), "activations are [{}, {}]", input.rows, w.cols());
    assert!(input.norm.is_none_or(|norm| norm.weight.len() == w.cols()), "a norm's weight for each column");
}

/// Rows of one call in the forms that its weights need.
#[derive(Default)]
pub(super) struct Rows<'a> {
    float: Option<Cow<'a, [f32]>>,
    /// With a scale per 64 columns.
    by_64: Option<QuantizedRows>,
    /// With a scale per 256 columns.
    by_256: Option<QuantizedRows>,
}

impl<'a> Rows<'a> {
    pub(super) fn of<'w>(
        isa: Isa,
        pool: &Pool,
        input: &Input<'a>,
        weights: impl Iterator<Item = &'w PackedMatrix>,
    ) -> Self {
        let mut rows = Self::default();
        for w in weights {
            let new = |block| QuantizedRows::new(isa, pool, input, w.cols(), block);
            match activation_block(w.format()) {
                Some(64) => _ = rows.by_64.get_or_insert_with(|| new(64)),
                Some(block) => _ = rows.by_256.get_or_insert_with(|| new(block)),
                None => _ = rows.float.get_or_insert_with(|| float_rows(isa, pool, input)),
            }
        }
        rows
    }

    /// Gathers rows of `cols` columns by index, in the order of `numbers`, which may repeat.
    pub(super) fn gathered(&self, pool: &Pool, cols: usize, numbers: &[usize]) -> Rows<'static> {
        let quantized = |rows: &Option<QuantizedRows>| rows.as_ref().map(|rows| rows.gathered(pool, numbers));
        let float = self.float.as_deref().map(|x| Cow::Owned(gathered_floats(pool, x, cols, numbers)));
        Rows { float, by_64: quantized(&self.by_64), by_256: quantized(&self.by_256) }
    }

    fn quantized(&self, block: usize) -> &QuantizedRows {
        let rows = if block == 64 { &self.by_64 } else { &self.by_256 };
        rows.as_ref().expect("made for the weights of the call")
    }

    fn float(&self) -> &[f32] {
        self.float.as_deref().expect("made for the weights of the call")
    }
}

/// Activation columns per scale for a weight format: 64, 256, or `None` if activations stay floats.
fn activation_block(format: WeightFormat) -> Option<usize> {
    match format {
        WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 => None,
        WeightFormat::Q8 => Some(Q8::BLOCK),
        WeightFormat::Q4 => Some(Q4::BLOCK),
        WeightFormat::Ggml(ggml) => Some(ggml.activation_block()),
    }
}

/// A linear layer over a range of rows, of one or two weights.
pub(super) struct Layer<'a> {
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
pub(super) enum Tiles {
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
pub(super) enum Epilogue<'a> {
    /// Stores both tiles to columns of `y`.
    Store { bias: Option<&'a [f32]>, add: bool },
    /// Gates the second tile by the first, after adding the biases.
    Gate { activation: Activation, biases: Option<[&'a [f32]; 2]> },
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
pub(super) fn run(isa: Isa, pool: &Pool, x: &Rows<'_>, layers: &[Layer<'_>]) {
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
                Epilogue::Store { bias, add } => store(y, out, skip, bias, add),
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
    add: bool,
) {
    let bias = bias.map(|bias| &bias[y.columns()]);
    for (row, products) in products.iter().enumerate() {
        let y = y.row(row);
        let mut products: [f32; PAIR] = bytemuck::cast(*products);
        if let Some(bias) = bias {
            products[skip..].iter_mut().zip(bias).for_each(|(product, bias)| *product += bias);
        }
        match y.as_mut_array::<PAIR>() {
            Some(y) if add => y.iter_mut().zip(products).for_each(|(y, product)| *y += product),
            Some(y) => *y = products,
            None => {
                for (y, &product) in y.iter_mut().zip(&products[skip..]) {
                    *y = if add { *y + product } else { product };
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
