//! Fused operations against their unfused parts.

use burn::tensor::Tensor;
use lm_kernels::{
    Device, Source, Weight, WeightFormat, from_host, gated, glu, linear, linear_add, linear_bias, qkv,
    rms_norm, to_host,
};

use super::{ACTIVATIONS, Random, Target, assert_close};

const EPS: f32 = 1e-6;
/// rows, columns, results
const SHAPES: [(usize, usize, usize); 4] = [(1, 64, 32), (3, 300, 50), (9, 96, 33), (40, 256, 16)];

struct Case<'a> {
    target: &'a Target,
    random: Random,
    rows: usize,
    cols: usize,
    outputs: usize,
    format: WeightFormat,
}

impl Case<'_> {
    fn tensor<const D: usize>(&mut self, shape: [usize; D]) -> Tensor<D> {
        from_host(self.random.values(shape.iter().product(), 1.0), shape, &self.target.burn)
    }

    fn weight(&mut self) -> Weight {
        let values = self.random.values(self.outputs * self.cols, 0.2);
        Weight::load(self.target.device, self.format, self.outputs, self.cols, Source::F32(&values)).unwrap()
    }

    /// Checks for the same bits on the host, and elsewhere within single precision.
    fn check<const D: usize>(&self, what: &str, got: Tensor<D>, parts: Tensor<D>) {
        let Self { target, rows, cols, outputs, format, .. } = self;
        let what = format!("{what} {format} [{rows}, {cols}] to {outputs} on {}", target.device);
        let (got, parts) = (to_host(got).unwrap(), to_host(parts).unwrap());
        let on_host = matches!(target.device, Device::Cpu | Device::NdArray);
        let parts: Vec<f64> = parts.iter().map(|&x| x.into()).collect();
        assert_close(&what, &got, &parts, |i| if on_host { 0.0 } else { 1e-5 * parts[i].abs().max(1.0) });
    }
}

fn for_each_case(target: &Target, seed: u64, mut check: impl FnMut(&mut Case<'_>)) {
    for format in [WeightFormat::F32, WeightFormat::Bf16, WeightFormat::Q8, WeightFormat::Q4] {
        for (rows, cols, outputs) in SHAPES {
            check(&mut Case { target, random: Random::new(seed), rows, cols, outputs, format });
        }
    }
}

pub fn check_qkv(target: &Target) {
    for_each_case(target, 21, |case| {
        let (x, norm) = (case.tensor([case.rows, case.cols]), case.tensor([case.cols]));
        let weights = [case.weight(), case.weight(), case.weight()];
        let got = qkv(x.clone(), norm.clone(), EPS, weights.each_ref(), [None, None, None]);
        let normed = rms_norm(x.clone(), norm.clone(), EPS);
        for (got, weight) in got.into_iter().zip(&weights) {
            case.check("qkv", got, linear(normed.clone(), weight));
        }
        let mut bias = || case.tensor::<1>([case.outputs]);
        let (of_q, of_v) = (bias(), bias());
        let got = qkv(x, norm, EPS, weights.each_ref(), [Some(of_q.clone()), None, Some(of_v.clone())]);
        for ((got, weight), bias) in got.into_iter().zip(&weights).zip([Some(of_q), None, Some(of_v)]) {
            let parts = match bias {
                None => linear(normed.clone(), weight),
                Some(bias) => linear_bias(normed.clone(), weight, bias, None),
            };
            case.check("qkv with biases", got, parts);
        }
    });
}

pub fn check_linear_add(target: &Target) {
    for_each_case(target, 22, |case| {
        let (x, residual) = (case.tensor([case.rows, case.cols]), case.tensor([case.rows, case.outputs]));
        let weight = case.weight();
        let parts = residual.clone() + linear(x.clone(), &weight);
        case.check("linear_add", linear_add(x.clone(), &weight, None, residual.clone()), parts);
        let bias = case.tensor([case.outputs]);
        let parts = residual.clone() + linear_bias(x.clone(), &weight, bias.clone(), None);
        case.check("linear_add with a bias", linear_add(x, &weight, Some(bias), residual), parts);
    });
}

pub fn check_linear_bias(target: &Target) {
    for_each_case(target, 24, |case| {
        let (x, weight) = (case.tensor([case.rows, case.cols]), case.weight());
        let bias = case.tensor::<1>([case.outputs]);
        let parts = linear(x.clone(), &weight) + bias.clone().unsqueeze();
        case.check("linear_bias", linear_bias(x.clone(), &weight, bias.clone(), None), parts.clone());
        for activation in ACTIVATIONS {
            let got = linear_bias(x.clone(), &weight, bias.clone(), Some(activation));
            let parts = glu(parts.clone(), Tensor::ones(parts.dims(), &target.burn), activation);
            case.check(&format!("linear_bias with {activation:?}"), got, parts);
        }
    });
}

pub fn check_gated(target: &Target) {
    for_each_case(target, 23, |case| {
        let (x, norm) = (case.tensor([case.rows, case.cols]), case.tensor([case.cols]));
        let (gate, up) = (case.weight(), case.weight());
        let normed = rms_norm(x.clone(), norm.clone(), EPS);
        let (gates, ups) = (linear(normed.clone(), &gate), linear(normed, &up));
        for activation in ACTIVATIONS {
            let parts = glu(gates.clone(), ups.clone(), activation);
            let got = gated(x.clone(), norm.clone(), EPS, &gate, &up, activation);
            case.check(&format!("gated by {activation:?}"), got, parts);
        }
    });
}
