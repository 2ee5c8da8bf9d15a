//! Mixture of experts (MoE).

use std::ops::Range;
use std::sync::Arc;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, ExtensionType, TensorMetadata, backend_extension};
use burn::tensor::{Int, Tensor};

use super::backend::{Bridge, on_every_backend};
use super::weight::Matrix;
use super::{InputSums, Op, Weight, from_host, glu};
use crate::host;
use crate::host::ExpertBiases;
use crate::host::{Activation, Pool, Routing};

pub(super) const OP: Op =
    Op { name: "moe", summary: "Σ weight · down(activation(gate(x), up(x))) over the experts of each row" };

/// Experts of a layer: gated MLPs of one shape, on one device.
///
/// Each weight stacks one projection of all experts, the rows of one expert following those of the previous
/// one, so that it is loaded, packed and moved like any other weight.
#[derive(Clone)]
pub struct Experts {
    gate: Weight,
    up: Weight,
    down: Weight,
    biases: Option<[Tensor<1>; 3]>,
    shape: ExpertShape,
}

/// Number of experts, and the activation of each gate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpertShape {
    pub count: usize,
    pub activation: Activation,
}

/// Sums of the inputs of gate, up and down projections, by expert.
type Recorded = Option<[Option<Arc<InputSums>>; 3]>;

/// Routing of the rows, and the sums that their inputs to experts are added to.
#[derive(Clone, Debug)]
pub struct RoutedRows {
    routing: Arc<Routing>,
    recorded: Recorded,
}

/// Biases of all experts, as operation arguments.
#[derive(ExtensionType)]
pub enum Biases<B: Backend> {
    Absent,
    /// `[count * intermediate]` twice and `[count * hidden]`.
    Present {
        gate: FloatTensor<B>,
        up: FloatTensor<B>,
        down: FloatTensor<B>,
    },
}

impl Experts {
    /// Combines the weights of `count` experts.
    ///
    /// # Shapes
    /// - `gate`, `up`: `[count * intermediate, hidden]`, `down`: `[count * hidden, intermediate]`
    /// - `biases`, of the three projections: `[count * intermediate]` twice and `[count * hidden]`
    ///
    /// # Panics
    /// When shapes do not fit.
    pub fn new(
        count: usize,
        [gate, up, down]: [Weight; 3],
        biases: Option<[Tensor<1>; 3]>,
        activation: Activation,
    ) -> Self {
        let (hidden, intermediate) = (gate.cols(), down.cols());
        for (w, rows, cols) in
            [(&gate, intermediate, hidden), (&up, intermediate, hidden), (&down, hidden, intermediate)]
        {
            assert_eq!(
                [w.rows(), w.cols()],
                [count * rows, cols],
                "experts: a weight against {count} experts"
            );
        }
        for (bias, len) in biases.iter().flatten().zip([intermediate, intermediate, hidden]) {
            assert_eq!(bias.dims(), [count * len], "experts: a bias for each result of {count} experts");
        }
        Self { gate, up, down, biases, shape: ExpertShape { count, activation } }
    }

    /// Number of experts.
    pub fn count(&self) -> usize {
        self.shape.count
    }

    /// Sums of the inputs of the three projections, if they are recorded.
    fn recorded(&self) -> Recorded {
        let sums = [&self.gate, &self.up, &self.down].map(|weight| weight.inputs().cloned());
        sums.iter().any(Option::is_some).then_some(sums)
    }

    /// Bytes of the weights of all experts in the device's memory.
    pub fn bytes(&self) -> usize {
        [&self.gate, &self.up, &self.down].map(Weight::bytes).into_iter().sum()
    }
}

/// Sends each row of `x` through the experts that `routing` selects for it, and sums their results times the
/// routing weights.
///
/// The CPU devices read only the weights of selected experts, and group the rows of a prefill by expert; a
/// row's result is bit-identical in every batch.
///
/// # Shapes
/// - `x`: `[rows, hidden]`; returns the same shape
///
/// # Panics
/// When shapes do not fit, an expert is out of range, or a weight is on another device.
///
/// # Source
/// Shazeer et al., arXiv 1701.06538.
pub fn moe(x: Tensor<2>, experts: &Experts, routing: &Arc<Routing>) -> Tensor<2> {
    let [rows, size] = x.dims();
    assert_eq!(size, experts.gate.cols(), "moe: a row of x must be as long as a row of the gates");
    routing.check(rows, experts.count());
    let [gate, up, down] = [&experts.gate, &experts.up, &experts.down].map(|w| w.matrix().clone());
    let biases = match &experts.biases {
        None => Biases::Absent,
        Some(biases) => {
            let [gate, up, down] = biases.each_ref().map(|bias| bias.clone().into_dispatch());
            Biases::Present { gate, up, down }
        }
    };
    let rows = RoutedRows { routing: Arc::clone(routing), recorded: experts.recorded() };
    Tensor::from_dispatch(Dispatch::moe(x.into_dispatch(), gate, up, down, biases, experts.shape, rows))
}

/// Backend operation of [`moe`].
#[backend_extension(Flex, NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "wgpu"))]
pub trait MoeOp: Bridge {
    fn moe(
        x: FloatTensor<Self>,
        #[extension_type] gate: Matrix<Self>,
        #[extension_type] up: Matrix<Self>,
        #[extension_type] down: Matrix<Self>,
        #[extension_type] biases: Biases<Self>,
        shape: ExpertShape,
        rows: RoutedRows,
    ) -> FloatTensor<Self> {
        let RoutedRows { routing, recorded } = rows;
        match (Self::HOST.filter(|_| recorded.is_none()), gate, up, down) {
            (Some(tensors), Matrix::Host(gate), Matrix::Host(up), Matrix::Host(down)) => {
                let biases = match &biases {
                    Biases::Absent => None,
                    Biases::Present { gate, up, down } => Some([gate, up, down].map(|b| tensors.values(b))),
                };
                let biases = biases.as_ref().map(|[gate, up, down]| ExpertBiases { gate, up, down });
                let ExpertShape { count, activation } = shape;
                let (gate, up, down) = (&gate, &up, &down);
                let experts = host::Experts { count, gate, up, down, biases, activation };
                tensors.map(x.shape(), x, |x, y| host::moe(Pool::global(), x, &experts, &routing, y))
            }
            (_, gate, up, down) => {
                Self::lower(portable(Self::lift(x), [gate, up, down], biases, shape, &routing, recorded))
            }
        }
    }
}

on_every_backend!(MoeOp);

pub(super) fn portable<B: Bridge>(
    x: Tensor<2>,
    weights: [Matrix<B>; 3],
    biases: Biases<B>,
    ExpertShape { count, activation }: ExpertShape,
    routing: &Routing,
    recorded: Recorded,
) -> Tensor<2> {
    let ([rows, hidden], device) = (x.dims(), x.device());
    if rows == 0 {
        return x;
    }
    let biases: Option<[Tensor<1>; 3]> = match biases {
        Biases::Absent => None,
        Biases::Present { gate, up, down } => Some([gate, up, down].map(B::lift)),
    };
    let index = |places: &[usize]| {
        let places: Vec<i32> = places.iter().map(|&place| place as i32).collect();
        Tensor::<1, Int>::from_data(places.as_slice(), &device)
    };
    let grouped = routing.grouped(count);
    let of_expert = |(expert, slots): &(usize, Range<usize>)| {
        let product = |projection: usize, x: Tensor<2>| {
            if let Some(inputs) = recorded.as_ref().and_then(|inputs| inputs[projection].as_ref()) {
                inputs.add(*expert, &x);
            }
            let rows = weights[projection].rows() / count;
            let part = expert * rows..(expert + 1) * rows;
            let y = weights[projection].multiply_part(part.clone(), x);
            match &biases {
                None => y,
                Some(biases) => y + biases[projection].clone().slice(part).unsqueeze(),
            }
        };
        let x = x.clone().select(0, index(&grouped.rows[slots.clone()])); // [slots of the expert, hidden]
        let (gate, up) = (product(0, x.clone()), product(1, x)); // [slots of the expert, intermediate]
        product(2, glu::portable(gate, up, activation)) // [slots of the expert, hidden]
    };
    let results = Tensor::cat(grouped.groups.iter().map(of_expert).collect(), 0); // [slots, hidden]
    let results = results.select(0, index(&grouped.slots)).reshape([rows, routing.per_row, hidden]);
    let weights = from_host(routing.weights.clone(), [rows, routing.per_row, 1], &device);
    (results * weights).sum_dim(1).reshape([rows, hidden])
}
