//! `mamba2` against loops in double precision, and against itself.

use super::super::testing::{Random, bits, in_pieces};
use super::*;

struct Case {
    spec: Mamba2Spec,
    kernel: usize,
    taps: Vec<f32>,
    conv_bias: Vec<f32>,
    rates: Vec<f32>,
    biases: Vec<f32>,
    skips: Vec<f32>,
}

impl Case {
    fn new(spec: Mamba2Spec, kernel: usize, random: &mut Random) -> Self {
        let rates = random.normal(spec.num_heads).iter().map(|x| x.exp()).collect();
        let (taps, conv_bias) = (random.normal(spec.conv_width() * kernel), random.normal(spec.conv_width()));
        let [biases, skips] = [(); 2].map(|()| random.normal(spec.num_heads));
        Self { spec, kernel, taps, conv_bias, rates, biases, skips }
    }

    fn net(&self) -> Mamba2 {
        let conv = CausalConv::new(self.kernel, self.spec.conv_width(), &self.taps, Some(&self.conv_bias));
        Mamba2::new(self.spec, conv, self.rates.clone(), self.biases.clone(), self.skips.clone())
    }

    /// The convolved part of a row after the convolution and SiLU.
    fn convolved(&self, rows: &[f32], row: usize) -> Vec<f64> {
        let (stride, start) = (self.spec.projected_width(), self.spec.inner_width());
        let channel = |channel: usize| {
            let taps = &self.taps[channel * self.kernel..(channel + 1) * self.kernel];
            let inputs = (0..self.kernel.min(row + 1)).map(|back| {
                let input = rows[(row - back) * stride + start + channel];
                f64::from(taps[self.kernel - 1 - back]) * f64::from(input)
            });
            let sum = inputs.sum::<f64>() + f64::from(self.conv_bias[channel]);
            sum / (1.0 + (-sum).exp())
        };
        (0..self.spec.conv_width()).map(channel).collect()
    }

    /// The results for one whole sequence.
    fn exact(&self, rows: &[f32]) -> Vec<f64> {
        let Mamba2Spec { num_heads, head_dim, num_groups, state_dim, time_step_limit } = self.spec;
        let [shortest, longest] = time_step_limit.map(f64::from);
        let stride = self.spec.projected_width();
        let mut states = vec![vec![vec![0.0; state_dim]; head_dim]; num_heads];
        let mut out = Vec::new();
        for row in 0..rows.len() / stride {
            let mixed = self.convolved(rows, row);
            for (head, state) in states.iter_mut().enumerate() {
                let group = head * num_groups / num_heads;
                let b = &mixed[self.spec.inner_width() + group * state_dim..][..state_dim];
                let c = &mixed[self.spec.inner_width() + (num_groups + group) * state_dim..][..state_dim];
                let dt = f64::from(rows[(row + 1) * stride - num_heads + head]);
                let dt = (dt + f64::from(self.biases[head])).exp().ln_1p().clamp(shortest, longest);
                let alpha = (-f64::from(self.rates[head]) * dt).exp();
                for (column, state) in state.iter_mut().enumerate() {
                    let x = mixed[head * head_dim + column];
                    state.iter_mut().zip(b).for_each(|(s, b)| *s = *s * alpha + dt * x * b);
                    let read: f64 = state.iter().zip(c).map(|(s, c)| s * c).sum();
                    out.push(read + x * f64::from(self.skips[head]));
                }
            }
        }
        out
    }
}

const UNLIMITED: [f32; 2] = [0.0, f32::INFINITY];

fn spec([num_heads, head_dim, num_groups, state_dim]: [usize; 4], time_step_limit: [f32; 2]) -> Mamba2Spec {
    Mamba2Spec { num_heads, head_dim, num_groups, state_dim, time_step_limit }
}

#[test]
fn rows_equal_the_definition_for_every_split() {
    let mut random = Random(73);
    for (spec, kernel) in [
        (spec([1, 4, 1, 4], UNLIMITED), 2),
        (spec([4, 16, 2, 16], UNLIMITED), 4),
        (spec([3, 40, 1, 24], [0.3, 1.2]), 3),
        (spec([2, 64, 2, 128], UNLIMITED), 4),
        (spec([6, 20, 3, 9], [0.0, 0.9]), 4),
        (spec([1, 112, 1, 16], UNLIMITED), 1),
    ] {
        let case = Case::new(spec, kernel, &mut random);
        let net = case.net();
        let inputs = [70, 5, 33].map(|rows| random.normal(rows * spec.projected_width()));
        let run = |isa, threads, piece| {
            let (pool, mut states) = (Pool::new(threads), StatePages::new(6, net.state_len()).unwrap());
            states.get_mut(0).fill(f32::NAN); // The previous content of a page is ignored.
            in_pieces(&inputs, spec.projected_width(), piece, |layout, rows| {
                let mut out = vec![f32::NAN; layout.rows() * spec.inner_width()];
                mamba2_on(isa, &pool, rows, &net, &mut states, layout, &mut out);
                out
            })
        };
        let reference = run(Isa::Scalar, 1, usize::MAX);
        for (input, found) in inputs.iter().zip(&reference) {
            let exact = case.exact(input);
            assert_eq!(found.len(), exact.len());
            let scale = exact.iter().fold(1.0_f64, |scale, exact| scale.max(exact.abs()));
            for (found, exact) in found.iter().zip(exact) {
                let error = (f64::from(*found) - exact).abs();
                assert!(error <= 2e-6 * scale, "{spec:?}: {found}, not {exact}");
            }
        }
        for &isa in Isa::supported() {
            for piece in [1, 7, 32, 100] {
                for (found, reference) in run(isa, 3, piece).iter().zip(&reference) {
                    assert_eq!(bits(found), bits(reference), "{spec:?} in pieces of {piece}, {isa}");
                }
            }
        }
    }
}

/// A net of one head of one element with this limit of time steps, decay rate 2 and bias 1.
fn single(time_step_limit: [f32; 2]) -> Mamba2 {
    let spec = spec([1, 1, 1, 1], time_step_limit);
    Mamba2::new(spec, CausalConv::new(1, 3, &[1.0; 3], None), vec![2.0], vec![1.0], vec![0.0])
}

/// Inputs at the extremes of the exponentials.
#[test]
fn time_steps_stay_in_range() {
    let net = single(UNLIMITED);
    assert_eq!(net.step(0, -1e30), Step { alpha: 1.0, dt: 0.0 });
    assert_eq!(net.step(0, 1e30), Step { alpha: 0.0, dt: 1e30 });
    let limited = single([0.5, 2.0]);
    assert_eq!(limited.step(0, -1e30), Step { alpha: (-1.0_f64).exp() as f32, dt: 0.5 });
    assert_eq!(limited.step(0, 1e30), Step { alpha: (-4.0_f64).exp() as f32, dt: 2.0 });
}

#[test]
#[should_panic(expected = "sequences 0 and 1 write page 1")]
fn page_of_two_sequences_is_rejected() {
    let net = single(UNLIMITED);
    let mut states = StatePages::new(2, net.state_len()).unwrap();
    let layout = crate::host::testing::beside([0..1, 1..2], [1, 1]);
    mamba2(&Pool::new(2), &[1.0; 10], &net, &mut states, &layout, &mut [0.0; 2]);
}
