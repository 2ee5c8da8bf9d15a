//! Linear layers: `y = x · Wᵀ`, several of them over the same rows, with fused prologue (norm) and epilogue
//! (bias, add, gating).
//!
//! The unit of work is two tiles of 16 weight rows times some activation rows ([`multiply`]): 32 columns of a
//! result. [`integer`] and [`float`] define the arithmetic of a format.
//! Results do not depend on the number of activation rows, the threads or the vector width.

mod activations;
mod batched;
mod block_tiles;
mod blocks;
mod codes;
mod float;
mod integer;
mod multiply;
mod panels;
mod q4;
mod q8;
mod tasks;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use super::activation::Activation;
use super::isa::Isa;
use super::norm::Norm;
use super::pack::{IntegerLayout, PackedMatrix, Q4, Q8, WeightFormat};
use super::pool::Pool;
use super::profile::{self, Work};
use super::split::SharedMatrix;
use activations::{QuantizedRows, float_rows, gathered_floats};
pub use batched::batched_linear;
pub(super) use batched::matrix_of;
pub use tasks::Then;
pub(super) use tasks::{Epilogue, Layer, run};

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
    /// Use of the sums.
    pub then: Then,
    /// `[rows, out]`.
    pub y: &'a mut [f32],
}

/// Multiplies `m` rows of activations by a packed weight: `y[i, r] = Σ x[i, c] · w[r, c]`.
///
/// Float weights are multiplied as they are and summed in single precision, column by column. For all other
/// formats the activations are quantised to 8-bit integers with one scale per 32, 64 or 256 columns; a
/// block's products are summed exactly, then scaled and added block by block. A row's result is bit-identical
/// for every `m`, number of threads and [`Isa`].
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
    linears(pool, Input { x, rows: m, norm: None }, &mut [Output { w, bias: None, then: Then::Store, y }]);
}

/// [`linear`] for several weights over the same rows, which are normalised and quantised once.
///
/// Bit-identical to [`rms_norm`](super::rms_norm), [`linear`], additions and activations in sequence: first
/// the bias, then the old contents of `y` or the activation.
///
/// # Panics
/// When a length does not fit.
pub fn linears(pool: &Pool, input: Input<'_>, outputs: &mut [Output<'_>]) {
    let _span = profile::span(Work::Linear);
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
        .map(|Output { w, bias, then, y }| {
            (*w, Epilogue::Store { bias: *bias, then: *then }, SharedMatrix::new(y, w.rows()))
        })
        .collect();
    let layers: Vec<_> = results
        .iter()
        .map(|&(w, epilogue, ref y)| Layer { w, skip: 0, width: w.rows(), epilogue, rows: 0..input.rows, y })
        .collect();
    run(isa, pool, &x, &layers);
}

/// Gate and up projections of a gated MLP: `y = activation(x · Wᵀ of the gate) · (x · Wᵀ of up)`,
/// elementwise.
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
    let _span = profile::span(Work::Linear);
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
    let [w, up] = weights;
    let epilogue = Epilogue::Gate { up, activation, biases: None };
    run(isa, pool, &x, &[Layer { w, skip: 0, width: out, epilogue, rows: 0..input.rows, y: &y }]);
}

fn check(input: &Input<'_>, w: &PackedMatrix) {
    assert_eq!(input.x.len(), input.rows * w.cols(), "activations are [{}, {}]", input.rows, w.cols());
    assert!(input.norm.is_none_or(|norm| norm.weight.len() == w.cols()), "a norm's weight for each column");
}

/// Rows of one call in the forms that its weights need.
#[derive(Default)]
pub(super) struct Rows<'a> {
    float: Option<Cow<'a, [f32]>>,
    /// With a scale per block of columns, for each of [`BLOCKS`].
    quantized: [Option<QuantizedRows>; BLOCKS.len()],
}

/// Activation columns per scale.
const BLOCKS: [usize; 3] = [32, 64, 256];

impl<'a> Rows<'a> {
    pub(super) fn of<'w>(
        isa: Isa,
        pool: &Pool,
        input: &Input<'a>,
        weights: impl Iterator<Item = &'w PackedMatrix>,
    ) -> Self {
        let _span = profile::span(Work::Rounding);
        let mut rows = Self::default();
        for w in weights {
            match activation_block(w.format()) {
                Some(block) => {
                    let new = || QuantizedRows::new(isa, pool, input, w.cols(), block);
                    _ = rows.quantized[index_of(block)].get_or_insert_with(new);
                }
                None => _ = rows.float.get_or_insert_with(|| float_rows(isa, pool, input)),
            }
        }
        rows
    }

    /// Gathers rows of `cols` columns by index, in the order of `numbers`, which may repeat.
    pub(super) fn gathered(&self, pool: &Pool, cols: usize, numbers: &[usize]) -> Rows<'static> {
        let float = self.float.as_deref().map(|x| Cow::Owned(gathered_floats(pool, x, cols, numbers)));
        let gathered = |rows: &Option<QuantizedRows>| rows.as_ref().map(|rows| rows.gathered(pool, numbers));
        Rows { float, quantized: self.quantized.each_ref().map(gathered) }
    }

    fn quantized(&self, block: usize) -> &QuantizedRows {
        self.quantized[index_of(block)].as_ref().expect("made for the weights of the call")
    }

    fn float(&self) -> &[f32] {
        self.float.as_deref().expect("made for the weights of the call")
    }
}

/// Bytes of an activation row in the form that a weight needs.
fn row_bytes(w: &PackedMatrix) -> usize {
    match activation_block(w.format()) {
        Some(_) => w.cols().div_ceil(activations::SPAN) * size_of::<activations::Span>(),
        None => w.cols() * size_of::<f32>(),
    }
}

/// Index of a number of columns in [`BLOCKS`].
fn index_of(block: usize) -> usize {
    BLOCKS.iter().position(|&columns| columns == block).expect("one of the block lengths")
}

/// Activation columns per scale for a weight format, one of [`BLOCKS`], or `None` if activations stay floats.
fn activation_block(format: WeightFormat) -> Option<usize> {
    match format {
        WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 => None,
        WeightFormat::Q8 => Some(Q8::BLOCK),
        WeightFormat::Q4 => Some(Q4::BLOCK),
        WeightFormat::Ggml(ggml) => Some(ggml.activation_block()),
    }
}
