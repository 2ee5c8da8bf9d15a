//! `delta_net` against loops in double precision, and against itself.

use super::super::testing::{Random, bits, in_pieces};
use super::HeadOrder::{Grouped, Tiled};
use super::*;

struct Case {
    spec: DeltaNetSpec,
    kernel: usize,
    taps: Vec<f32>,
    rates: Vec<f32>,
    biases: Vec<f32>,
}

impl Case {
    fn new(
        heads: [usize; 2],
        order: HeadOrder,
        dims: [usize; 2],
        kernel: usize,
        random: &mut Random,
    ) -> Self {
        let ([num_key_heads, num_value_heads], [key_dim, value_dim]) = (heads, dims);
        let spec = DeltaNetSpec { num_key_heads, num_value_heads, key_dim, value_dim, order };
        let rates = random.normal(num_value_heads).iter().map(|x| x.exp()).collect();
        let (taps, biases) = (random.normal(spec.width() * kernel), random.normal(num_value_heads));
        Self { spec, kernel, taps, rates, biases }
    }

    fn net(&self) -> DeltaNet {
        let conv = CausalConv::new(self.kernel, self.spec.width(), &self.taps, None);
        DeltaNet::new(self.spec, conv, self.rates.clone(), self.biases.clone())
    }

    /// Elements of a row: queries, keys and values, `dt`, `beta`.
    fn row(&self) -> usize {
        self.spec.width() + 2 * self.spec.num_value_heads
    }

    /// The rows' queries, keys and values, their `dt` and `beta`.
    fn split(&self, rows: &[f32]) -> [Vec<f32>; 3] {
        let (width, heads) = (self.spec.width(), self.spec.num_value_heads);
        [0..width, width..width + heads, width + heads..self.row()]
            .map(|part| rows.chunks_exact(self.row()).flat_map(|row| row[part.clone()].to_vec()).collect())
    }

    /// Queries, keys and values of a row after the convolution and SiLU.
    fn convolved(&self, qkv: &[f32], row: usize) -> Vec<f64> {
        let width = self.spec.width();
        let channel = |channel: usize| {
            let taps = &self.taps[channel * self.kernel..(channel + 1) * self.kernel];
            let inputs = (0..self.kernel.min(row + 1)).map(|back| {
                f64::from(taps[self.kernel - 1 - back]) * f64::from(qkv[(row - back) * width + channel])
            });
            let sum: f64 = inputs.sum();
            sum / (1.0 + (-sum).exp())
        };
        (0..width).map(channel).collect()
    }

    /// The results for one whole sequence.
    fn exact(&self, rows: &[f32]) -> Vec<f64> {
        let DeltaNetSpec { num_key_heads, num_value_heads, key_dim, value_dim, order } = self.spec;
        let [qkv, dts, betas] = self.split(rows);
        let mut states = vec![vec![vec![0.0; value_dim]; key_dim]; num_value_heads];
        let mut out = Vec::new();
        for row in 0..rows.len() / self.row() {
            let mixed = self.convolved(&qkv, row);
            let (q, rest) = mixed.split_at(num_key_heads * key_dim);
            let (k, v) = rest.split_at(num_key_heads * key_dim);
            for (head, state) in states.iter_mut().enumerate() {
                let key_head = match order {
                    HeadOrder::Grouped => head * num_key_heads / num_value_heads,
                    HeadOrder::Tiled => head % num_key_heads,
                };
                let normed = |x: &[f64]| -> Vec<f64> {
                    let x = &x[key_head * key_dim..(key_head + 1) * key_dim];
                    let root = (x.iter().map(|x| x * x).sum::<f64>() + 1e-6).sqrt();
                    x.iter().map(|x| x / root).collect()
                };
                let (q, k, v) = (normed(q), normed(k), &v[head * value_dim..(head + 1) * value_dim]);
                let index = row * num_value_heads + head;
                let softplus = (f64::from(dts[index]) + f64::from(self.biases[head])).exp().ln_1p();
                let alpha = (-f64::from(self.rates[head]) * softplus).exp();
                let beta = 1.0 / (1.0 + (-f64::from(betas[index])).exp());
                for column in 0..value_dim {
                    state.iter_mut().for_each(|row| row[column] *= alpha);
                    let s_k: f64 = state.iter().zip(&k).map(|(row, k)| row[column] * k).sum();
                    let correction = beta * (v[column] - s_k);
                    state.iter_mut().zip(&k).for_each(|(row, k)| row[column] += k * correction);
                    let read: f64 = state.iter().zip(&q).map(|(row, q)| row[column] * q).sum();
                    out.push(read / (key_dim as f64).sqrt());
                }
            }
        }
        out
    }
}

#[test]
fn rows_equal_the_definition_for_every_split() {
    let mut random = Random(72);
    for (heads, order, dims, kernel) in [
        ([1, 1], Grouped, [4, 4], 2),
        ([2, 4], Grouped, [16, 16], 4),
        ([1, 3], Grouped, [24, 40], 3),
        ([2, 2], Grouped, [128, 128], 4),
        ([3, 6], Grouped, [8, 20], 4),
        ([3, 6], Tiled, [8, 20], 4),
        ([1, 1], Grouped, [16, 112], 4),
    ] {
        let case = Case::new(heads, order, dims, kernel, &mut random);
        let net = case.net();
        let inputs = [70, 5, 33].map(|rows| random.normal(rows * case.row()));
        let run = |isa, threads, piece| {
            let (pool, mut states) = (Pool::new(threads), StatePages::new(6, net.state_len()).unwrap());
            states.get_mut(0).fill(f32::NAN); // The previous content of a page is ignored.
            in_pieces(&inputs, case.row(), piece, |layout, rows| {
                let [qkv, dt, beta] = case.split(rows);
                let rows = DeltaNetRows { qkv: &qkv, dt: &dt, beta: &beta };
                let mut out = vec![f32::NAN; dt.len() * case.spec.value_dim];
                delta_net_on(isa, &pool, rows, &net, &mut states, layout, &mut out);
                out
            })
        };
        let reference = run(Isa::Scalar, 1, usize::MAX);
        for (input, found) in inputs.iter().zip(&reference) {
            let exact = case.exact(input);
            assert_eq!(found.len(), exact.len());
            for (found, exact) in found.iter().zip(exact) {
                let error = (f64::from(*found) - exact).abs();
                assert!(error <= 1e-5, "{:?}: {found}, not {exact}", case.spec);
            }
        }
        for &isa in Isa::supported() {
            for piece in [1, 7, 32, 100] {
                for (found, reference) in run(isa, 3, piece).iter().zip(&reference) {
                    assert_eq!(bits(found), bits(reference), "{:?} in pieces of {piece}, {isa}", case.spec);
                }
            }
        }
    }
}

/// Inputs at the extremes of the exponentials.
#[test]
fn gates_stay_in_range() {
    let spec =
        DeltaNetSpec { num_key_heads: 1, num_value_heads: 2, key_dim: 1, value_dim: 1, order: Grouped };
    let conv = CausalConv::new(1, spec.width(), &[1.0; 4], None);
    let net = DeltaNet::new(spec, conv, vec![0.0078125, 16.0], vec![0.0, 1.0]);
    assert_eq!(net.gate(0, 1e30, 1e30), Gate { alpha: 0.0, beta: 1.0 });
    assert_eq!(net.gate(1, -1e30, -1e30), Gate { alpha: 1.0, beta: 0.0 });
    let alpha = (-0.0078125_f64 * 800.0).exp() as f32;
    assert_eq!(net.gate(0, 800.0, 0.0), Gate { alpha, beta: 0.5 });
}

/// Two sequences with these rows and pages for their states.
fn two_sequences(rows: [std::ops::Range<usize>; 2], pages: [u32; 2]) {
    let spec =
        DeltaNetSpec { num_key_heads: 1, num_value_heads: 1, key_dim: 1, value_dim: 1, order: Grouped };
    let conv = CausalConv::new(1, spec.width(), &[1.0; 3], None);
    let net = DeltaNet::new(spec, conv, vec![1.0], vec![0.0]);
    let mut states = StatePages::new(2, net.state_len()).unwrap();
    let inputs = DeltaNetRows { qkv: &[1.0; 6], dt: &[0.0; 2], beta: &[0.0; 2] };
    let layout = crate::host::testing::beside(rows, pages);
    delta_net(&Pool::new(2), inputs, &net, &mut states, &layout, &mut [0.0; 2]);
}

#[test]
#[should_panic(expected = "sequences 0 and 1 write page 1")]
fn page_of_two_sequences_is_rejected() {
    two_sequences([0..1, 1..2], [1, 1]);
}

#[test]
#[should_panic(expected = "1..2 follows rows that end at 2")]
fn rows_of_two_sequences_are_rejected() {
    two_sequences([0..2, 1..2], [0, 1]);
}
