//! `moe` against loops over [`linear`], in every batch, and with poisoned weights of experts that are not
//! selected.

use super::super::testing::{Random, bits};
use super::super::{Source, WeightFormat, linear};
use super::*;

const FORMATS: [WeightFormat; 4] =
    [WeightFormat::F32, WeightFormat::Bf16, WeightFormat::Q8, WeightFormat::Q4];
const ACTIVATIONS: [Activation; 4] = [
    Activation::Silu,
    Activation::GeluTanh,
    Activation::ClampedSwiglu { alpha: 1.702, limit: 0.7 },
    Activation::Gelu,
];

/// A layer of random experts.
struct Layers {
    count: usize,
    hidden: usize,
    gate: PackedMatrix,
    up: PackedMatrix,
    down: PackedMatrix,
    biases: Option<[Vec<f32>; 3]>,
}

impl Layers {
    fn new(random: &mut Random, format: WeightFormat, sizes: [usize; 3], biased: bool) -> Self {
        let [count, hidden, inner] = sizes;
        let mut pack = |rows: usize, cols: usize| {
            let values: Vec<f32> = random.normal(count * rows * cols).iter().map(|x| x * 0.2).collect();
            PackedMatrix::pack(format, count * rows, cols, Source::F32(&values)).unwrap()
        };
        let (gate, up, down) = (pack(inner, hidden), pack(inner, hidden), pack(hidden, inner));
        let biases = biased.then(|| [inner, inner, hidden].map(|len| random.normal(count * len)));
        Self { count, hidden, gate, up, down, biases }
    }

    fn experts(&self, activation: Activation) -> Experts<'_> {
        let biases = self.biases.as_ref().map(|[gate, up, down]| ExpertBiases { gate, up, down });
        let Self { count, gate, up, down, .. } = self;
        Experts { count: *count, gate, up, down, biases, activation }
    }

    /// One row by `linear` over all experts and plain loops.
    fn expected(&self, x: &[f32], routing: &Routing, row: usize, activation: Activation) -> Vec<f32> {
        let (pool, inner) = (Pool::new(1), self.down.cols());
        let all = |w: &PackedMatrix, x: &[f32], bias: usize| {
            let mut y = vec![0.0; w.rows()];
            linear(&pool, w, x, 1, &mut y);
            if let Some(biases) = &self.biases {
                y.iter_mut().zip(&biases[bias]).for_each(|(y, bias)| *y += bias);
            }
            y
        };
        let (gates, ups) = (all(&self.gate, x, 0), all(&self.up, x, 1));
        let mut y = vec![0.0; self.hidden];
        for index in row * routing.per_row..(row + 1) * routing.per_row {
            let expert = routing.experts[index] as usize;
            let gated: Vec<f32> =
                (expert * inner..(expert + 1) * inner).map(|i| activation.gate(gates[i], ups[i])).collect();
            let down = all(&self.down, &gated, 2);
            for (y, down) in y.iter_mut().zip(&down[expert * self.hidden..]) {
                *y += routing.weights[index] * down;
            }
        }
        y
    }
}

fn routing(random: &mut Random, rows: usize, per_row: usize, count: usize) -> Routing {
    let mut experts = Vec::new();
    for _ in 0..rows {
        let mut all: Vec<u32> = (0..count as u32).collect();
        (1..count).rev().for_each(|i| all.swap(i, random.between(0, i)));
        experts.extend(&all[..per_row]);
    }
    Routing { per_row, experts, weights: random.normal(rows * per_row) }
}

#[test]
fn rows_equal_those_of_their_experts() {
    let mut random = Random(51);
    for (index, format) in FORMATS.into_iter().enumerate() {
        // Experts with fewer and with more rows than the matrix unit takes at a time.
        // Experts that begin and end at tile boundaries, and experts that share tiles with their neighbours.
        for (sizes, per_row, rows) in [
            ([4, 48, 32], 2, 1),
            ([3, 272, 80], 1, 5),
            ([5, 64, 304], 3, 90),
            ([5, 48, 24], 2, 1),
            ([7, 264, 41], 3, 40),
            ([3, 9, 5], 2, 7),
        ] {
            let layers = Layers::new(&mut random, format, sizes, rows != 5);
            let routing = routing(&mut random, rows, per_row, sizes[0]);
            let x = random.normal(rows * sizes[1]);
            let activation = ACTIVATIONS[(index + rows) % 4];
            let expected: Vec<f32> = x
                .chunks(sizes[1])
                .enumerate()
                .flat_map(|(row, x)| layers.expected(x, &routing, row, activation))
                .collect();
            for &isa in Isa::supported() {
                let mut y = vec![f32::NAN; x.len()];
                moe_on(isa, &Pool::new(3), &x, &layers.experts(activation), &routing, &mut y);
                assert_eq!(bits(&y), bits(&expected), "{format} {sizes:?}, {rows} rows, {isa}");
            }
        }
    }
}

#[test]
fn experts_without_rows_are_not_read() {
    let mut random = Random(52);
    for sizes in [[3, 32, 16], [3, 40, 21]] {
        check_reads(&mut random, sizes);
    }
}

fn check_reads(random: &mut Random, sizes: [usize; 3]) {
    let layers = Layers::new(random, WeightFormat::F32, sizes, false);
    // The second expert is all NaN: any use of it is visible.
    let poison = |w: &PackedMatrix| {
        let rows = w.rows() / 3;
        let mut values = vec![0.0; w.rows() * w.cols()];
        values.chunks_mut(w.cols()).enumerate().for_each(|(row, out)| w.dequantize_row(row, out));
        values[rows * w.cols()..2 * rows * w.cols()].fill(f32::NAN);
        PackedMatrix::pack(WeightFormat::F32, w.rows(), w.cols(), Source::F32(&values)).unwrap()
    };
    let poisoned = Layers {
        gate: poison(&layers.gate),
        up: poison(&layers.up),
        down: poison(&layers.down),
        ..Layers::new(random, WeightFormat::F32, sizes, false)
    };
    let routing = Routing { per_row: 2, experts: vec![2, 0, 0, 2], weights: vec![0.5, 0.25, 1.0, -1.0] };
    let x = random.normal(2 * sizes[1]);
    let run = |layers: &Layers| {
        let mut y = vec![f32::NAN; x.len()];
        moe(&Pool::new(2), &x, &layers.experts(Activation::Silu), &routing, &mut y);
        y
    };
    assert_eq!(bits(&run(&poisoned)), bits(&run(&layers)));
}

#[test]
fn clamped_gate_equals_the_definition() {
    let activation = Activation::ClampedSwiglu { alpha: 1.702, limit: 7.0 };
    for (gate, up) in [(0.5, 0.25), (9.0, -9.0), (-12.0, 30.0), (7.0, 7.0), (-0.0, 1.0)] {
        let (g, u) = (f64::from(gate).min(7.0), f64::from(up).clamp(-7.0, 7.0));
        let exact = (u + 1.0) * g / (1.0 + (-1.702 * g).exp());
        let got = activation.gate(gate, up);
        assert!((f64::from(got) - exact).abs() <= 1e-6 * exact.abs(), "({gate}, {up}): {got}, not {exact}");
    }
    assert!(activation.gate(f32::NAN, 1.0).is_nan() && activation.gate(1.0, f32::NAN).is_nan());
}

/// More rows than a task of a linear layer takes, and than one of the sum of the results; the other expert
/// has few.
#[test]
fn expert_with_many_rows_gets_all_rows() {
    const ROWS: usize = 600;
    let mut random = Random(53);
    for format in [WeightFormat::F32, WeightFormat::Q4] {
        let layers = Layers::new(&mut random, format, [2, 40, 24], true);
        let experts = (0..ROWS).map(|row| u32::from(row % 100 == 7)).collect();
        let routing = Routing { per_row: 1, experts, weights: random.normal(ROWS) };
        let x = random.normal(ROWS * 40);
        for &isa in Isa::supported() {
            let mut y = vec![f32::NAN; x.len()];
            moe_on(isa, &Pool::new(2), &x, &layers.experts(Activation::Silu), &routing, &mut y);
            for row in [0, 7, 408, 409, 410, 507, 516, 517, 518, 519, 599] {
                let place = row * 40..(row + 1) * 40;
                let expected = layers.expected(&x[place.clone()], &routing, row, Activation::Silu);
                assert_eq!(bits(&y[place]), bits(&expected), "{format} with {isa}, row {row}");
            }
        }
    }
}
