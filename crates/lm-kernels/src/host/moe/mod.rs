//! Mixture of experts (MoE): a gated MLP with many experts, a few of them per row.
//!
//! Rows are grouped by expert: an expert's weights are read once for all of its rows, and not at all if it
//! has none. A row's products are those of [`linear`](super::linear), and its experts' results are summed in
//! the order of its routing, so that a row's result is bit-identical in every batch.

mod routing;
#[cfg(test)]
mod tests;

use super::activation::Activation;
use super::isa::Isa;
use super::lanes::LANES;
use super::linear::{Epilogue, Input, Layer, Rows, Then, matrix_of, run};
use super::pack::PackedMatrix;
use super::pool::Pool;
use super::profile::{self, Work};
use super::split::{SharedMatrix, for_each_chunk};

use routing::Grouped;
pub use routing::Routing;

/// Elements per task that copies or sums rows.
const ELEMENTS: usize = 16 << 10;

/// Experts of a layer: gated MLPs of one shape. Each matrix holds one projection of all experts, the rows of
/// one expert following those of the previous one.
#[derive(Clone, Copy, Debug)]
pub struct Experts<'a> {
    /// Number of experts.
    pub count: usize,
    /// `[count * intermediate, hidden]`
    pub gate: &'a PackedMatrix,
    /// `[count * intermediate, hidden]`
    pub up: &'a PackedMatrix,
    /// `[count * hidden, intermediate]`
    pub down: &'a PackedMatrix,
    /// Biases of the three projections.
    pub biases: Option<ExpertBiases<'a>>,
    /// Activation of the gate projection.
    pub activation: Activation,
}

/// Biases of all experts of a layer.
#[derive(Clone, Copy, Debug)]
pub struct ExpertBiases<'a> {
    /// `[count, intermediate]`
    pub gate: &'a [f32],
    /// `[count, intermediate]`
    pub up: &'a [f32],
    /// `[count, hidden]`
    pub down: &'a [f32],
}

impl Experts<'_> {
    /// Hidden size: width of input and output rows.
    fn hidden(&self) -> usize {
        self.gate.cols()
    }

    /// Intermediate size of an expert.
    fn intermediate(&self) -> usize {
        self.down.cols()
    }

    fn check(&self) {
        let (count, hidden, intermediate) = (self.count, self.hidden(), self.intermediate());
        for (w, rows, cols) in [
            (self.gate, intermediate, hidden),
            (self.up, intermediate, hidden),
            (self.down, hidden, intermediate),
        ] {
            assert_eq!((w.rows(), w.cols()), (count * rows, cols), "a weight of {count} experts");
        }
        if let Some(ExpertBiases { gate, up, down }) = self.biases {
            for (bias, len) in [(gate, intermediate), (up, intermediate), (down, hidden)] {
                assert_eq!(bias.len(), count * len, "a bias for each result of {count} experts");
            }
        }
    }
}

/// Sends each row through the experts that `routing` selects and sums their weighted results:
/// `y = Σ weight · down(activation(gate(x), up(x)))`.
///
/// Reads only the weights of selected experts. A row's result is bit-identical in every batch, on any [`Isa`]
/// and with any number of threads.
///
/// # Shapes
/// - `x`, `y`: `[rows, hidden]`; `y` is overwritten
///
/// # Panics
/// When a length does not fit, or an expert is out of range.
///
/// # Source
/// Shazeer et al., arXiv 1701.06538; grouping by expert: MegaBlocks, arXiv 2211.15841.
///
/// # Examples
/// ```
/// use lm_kernels::{Activation, PackedMatrix, Pool, Source, WeightFormat, host};
/// // Two experts of 16 by 16: the second has twice the weights.
/// let values: Vec<f32> = (0..2 * 16 * 16).map(|i| if i < 256 { 1.0 } else { 2.0 }).collect();
/// let w = PackedMatrix::pack(WeightFormat::F32, 32, 16, Source::F32(&values))?;
/// let experts = host::Experts {
///     count: 2, gate: &w, up: &w, down: &w, biases: None, activation: Activation::Silu,
/// };
/// let routing = host::Routing { per_row: 1, experts: vec![1, 0], weights: vec![0.5, 1.0] };
/// let mut y = [0.0; 32];
/// host::moe(Pool::global(), &[1.0; 32], &experts, &routing, &mut y);
/// let silu = |x: f32| x / (1.0 + (-x).exp());
/// assert!((y[0] - 0.5 * 32.0 * silu(32.0) * 32.0).abs() < 1e-3);
/// assert!((y[16] - 16.0 * silu(16.0) * 16.0).abs() < 1e-3);
/// # Ok::<(), lm_kernels::Error>(())
/// ```
pub fn moe(pool: &Pool, x: &[f32], experts: &Experts<'_>, routing: &Routing, y: &mut [f32]) {
    let _span = profile::span(Work::Linear);
    moe_on(Isa::current(), pool, x, experts, routing, y);
}

/// [`moe`] on one instruction set.
fn moe_on(isa: Isa, pool: &Pool, x: &[f32], experts: &Experts<'_>, routing: &Routing, y: &mut [f32]) {
    experts.check();
    let (hidden, rows) = (experts.hidden(), routing.rows());
    assert_eq!(x.len(), rows * hidden, "activations are [{rows}, {hidden}]");
    assert_eq!(y.len(), x.len(), "results are [{rows}, {hidden}]");
    routing.check(rows, experts.count);

    let grouped = routing.grouped(experts.count);
    let gated = gated_products(isa, pool, x, experts, &grouped); // [slots, intermediate]
    let results = down_products(isa, pool, &gated, experts, &grouped); // [slots, hidden]
    add_up(pool, &results, &grouped.slots, routing, y);
}

/// Weighted sum of each row's results, in the order of its experts.
fn add_up(pool: &Pool, results: &[f32], slots: &[usize], routing: &Routing, y: &mut [f32]) {
    let width = y.len().checked_div(routing.rows()).unwrap_or(0);
    let step = (ELEMENTS / width.max(1)).max(1);
    for_each_chunk(pool, y, step * width, |index, y| {
        for (row, y) in y.chunks_exact_mut(width).enumerate() {
            let first = (index * step + row) * routing.per_row;
            let places = first..first + routing.per_row;
            y.fill(0.0);
            for (&slot, weight) in slots[places.clone()].iter().zip(&routing.weights[places]) {
                for (y, result) in y.iter_mut().zip(&results[slot * width..(slot + 1) * width]) {
                    *y += weight * result;
                }
            }
        }
    });
}

/// Computes `activation(gate(x), up(x))` of each slot. Rows are quantised once, whatever the number of
/// their experts.
fn gated_products(isa: Isa, pool: &Pool, x: &[f32], experts: &Experts<'_>, grouped: &Grouped) -> Vec<f32> {
    let (hidden, width) = (experts.hidden(), experts.intermediate());
    let stores = [experts.gate, experts.up];
    let rows = x.len().checked_div(hidden).unwrap_or(0);
    let input = Rows::of(isa, pool, &Input { x, rows, norm: None }, stores.into_iter());
    let input = input.gathered(pool, hidden, &grouped.rows);
    let mut gated = vec![0.0; grouped.rows.len() * width];
    let y = SharedMatrix::new(&mut gated, width);
    let weights: Vec<_> = grouped
        .groups
        .iter()
        .map(|(expert, _)| stores.map(|store| matrix_of(store, *expert, width)))
        .collect();
    let layers = weights.iter().zip(&grouped.groups).map(|(weights, (expert, slots))| {
        let part = expert * width..(expert + 1) * width;
        let biases = experts.biases.map(|biases| [&biases.gate[part.clone()], &biases.up[part]]);
        let [w, up] = weights;
        let epilogue = Epilogue::Gate { up, activation: experts.activation, biases };
        Layer { w, skip: expert * width % LANES, width, epilogue, rows: slots.clone(), y: &y }
    });
    run(isa, pool, &input, &layers.collect::<Vec<_>>());
    gated
}

/// Computes `down(gated)` of each slot.
fn down_products(isa: Isa, pool: &Pool, gated: &[f32], experts: &Experts<'_>, grouped: &Grouped) -> Vec<f32> {
    let (slots, width) = (grouped.rows.len(), experts.hidden());
    let input = Input { x: gated, rows: slots, norm: None };
    let input = Rows::of(isa, pool, &input, std::iter::once(experts.down));
    let mut results = vec![0.0; slots * width];
    let y = SharedMatrix::new(&mut results, width);
    let weights: Vec<_> =
        grouped.groups.iter().map(|(expert, _)| matrix_of(experts.down, *expert, width)).collect();
    let layers = weights.iter().zip(&grouped.groups).map(|(w, (expert, slots))| {
        let bias = experts.biases.map(|biases| &biases.down[expert * width..(expert + 1) * width]);
        let epilogue = Epilogue::Store { bias, then: Then::Store };
        Layer { w, skip: expert * width % LANES, width, epilogue, rows: slots.clone(), y: &y }
    });
    run(isa, pool, &input, &layers.collect::<Vec<_>>());
    results
}
