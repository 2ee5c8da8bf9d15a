//! Mixture of experts against loops over the rows of each expert.

use std::sync::Arc;

use burn::tensor::Tensor;
use lm_kernels::{
    Activation, Device, Experts, PackedMatrix, Routing, Source, Weight, WeightFormat, from_host, moe, to_host,
};

use super::{ACTIVATIONS, Random, Target, assert_close, gate as gate_by};

/// experts, hidden, intermediate, experts per row, rows
const CASES: [[usize; 5]; 7] = [
    [4, 32, 64, 2, 1],
    [6, 96, 16, 1, 9],
    [3, 64, 48, 3, 4],
    [16, 32, 32, 4, 70],
    [5, 64, 24, 2, 3],
    [7, 40, 35, 2, 40],
    [3, 9, 5, 2, 1],
];

pub fn check(target: &Target) {
    let mut random = Random::new(31);
    for format in [WeightFormat::F32, WeightFormat::F16, WeightFormat::Q8, WeightFormat::Q4] {
        for (index, case) in CASES.into_iter().enumerate() {
            Case::new(target, format, case, index % 2 == 0, &mut random)
                .check(ACTIVATIONS[index % ACTIVATIONS.len()]);
        }
    }
}

/// A projection of all experts: on the device, and its values.
struct Projection {
    weight: Weight,
    values: Vec<f32>,
    bias: Vec<f32>,
}

struct Case<'a> {
    target: &'a Target,
    format: WeightFormat,
    sizes: [usize; 5],
    projections: [Projection; 3],
    biased: bool,
    x: Vec<f32>,
    routing: Routing,
}

impl<'a> Case<'a> {
    fn new(
        target: &'a Target,
        format: WeightFormat,
        sizes: [usize; 5],
        biased: bool,
        random: &mut Random,
    ) -> Self {
        let [count, hidden, inner, per_row, rows] = sizes;
        let mut projection = |rows: usize, cols: usize| {
            let values = random.values(count * rows * cols, 0.3);
            let packed = PackedMatrix::pack(format, count * rows, cols, Source::F32(&values)).unwrap();
            let mut meant = vec![0.0; values.len()];
            meant.chunks_mut(cols).enumerate().for_each(|(row, meant)| packed.dequantize_row(row, meant));
            let weight = Weight::place(target.device, packed).unwrap();
            Projection { weight, values: meant, bias: random.values(count * rows, 0.5) }
        };
        let projections = [projection(inner, hidden), projection(inner, hidden), projection(hidden, inner)];
        let x = random.values(rows * hidden, 1.0);
        let experts = (0..rows).flat_map(|_| random.shuffled(count).split_off(count - per_row)).collect();
        let routing = Routing { per_row, experts, weights: random.values(rows * per_row, 1.0) };
        Self { target, format, sizes, projections, biased, x, routing }
    }

    fn check(&self, activation: Activation) {
        let [count, hidden, _, _, rows] = self.sizes;
        let device = &self.target.burn;
        let vector = |p: &Projection| -> Tensor<1> { from_host(p.bias.clone(), [p.bias.len()], device) };
        let biases = self.biased.then(|| self.projections.each_ref().map(vector));
        let experts =
            Experts::new(count, self.projections.each_ref().map(|p| p.weight.clone()), biases, activation);
        let x = from_host(self.x.clone(), [rows, hidden], device);
        let got = to_host(moe(x, &experts, &Arc::new(self.routing.clone()))).unwrap();
        let expected: Vec<f64> = (0..rows).flat_map(|row| self.expected(row, activation)).collect();
        let what = format!("moe {} {:?} {activation:?} on {}", self.format, self.sizes, self.target.device);
        let tolerance = self.tolerance();
        assert_close(&what, &got, &expected, |_| tolerance);
    }

    /// Sums of a few dozen products of order 1; the Q formats also round the activations, to 127 steps,
    /// twice.
    fn tolerance(&self) -> f64 {
        let on_host = matches!(self.target.device, Device::Cpu | Device::NdArray);
        let quantised = matches!(self.format, WeightFormat::Q8 | WeightFormat::Q4);
        if on_host && quantised { 0.05 } else { 2e-5 }
    }

    fn expected(&self, row: usize, activation: Activation) -> Vec<f64> {
        let [_, hidden, _, per_row, _] = self.sizes;
        let x: Vec<f64> = self.x[row * hidden..(row + 1) * hidden].iter().map(|&x| x.into()).collect();
        let mut y = vec![0.0; hidden];
        for place in row * per_row..(row + 1) * per_row {
            let expert = self.routing.experts[place] as usize;
            let (gate, up) = (self.product(0, expert, &x), self.product(1, expert, &x));
            let gated: Vec<f64> =
                gate.iter().zip(&up).map(|(&gate, &up)| gate_by(activation, gate, up)).collect();
            for (y, result) in y.iter_mut().zip(self.product(2, expert, &gated)) {
                *y += f64::from(self.routing.weights[place]) * result;
            }
        }
        y
    }

    fn product(&self, projection: usize, expert: usize, x: &[f64]) -> Vec<f64> {
        let Projection { weight, values, bias } = &self.projections[projection];
        let rows = weight.rows() / self.sizes[0];
        let of_row = |row: usize| {
            let w = &values[row * x.len()..(row + 1) * x.len()];
            let sum: f64 = w.iter().zip(x).map(|(&w, x)| f64::from(w) * x).sum();
            sum + if self.biased { f64::from(bias[row]) } else { 0.0 }
        };
        (expert * rows..(expert + 1) * rows).map(of_row).collect()
    }
}
