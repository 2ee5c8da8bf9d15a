//! `glu` against the definitions in double precision.

use super::super::testing::{Random, bits};
use super::*;

#[test]
fn values_equal_the_definition_on_every_isa() {
    let mut random = Random(41);
    let len = 2 * ELEMENTS + 77;
    let mut gate: Vec<f32> = random.normal(len).iter().map(|x| x * 8.0).collect();
    gate[..6].copy_from_slice(&[0.0, -0.0, 90.0, -90.0, 1e10, -1e10]);
    let up = random.normal(len);
    // Far below zero the exponential carries the error of its argument, which is a cube in GELU: 88 ·
    // 2^-24, and more.
    // The same holds for the square in the normal density and for 1.702 times the argument.
    let definitions = [
        (Activation::Silu, silu as fn(f64) -> f64, 1e-6),
        (Activation::GeluTanh, gelu, 3e-5),
        (Activation::Gelu, |x| x * normal_distribution(x), 2e-5),
        (Activation::QuickGelu, |x| x / (1.0 + (-1.702 * x).exp()), 1e-5),
        (Activation::Relu, |x| x.max(0.0), 1e-7),
        (Activation::ReluSquared, |x| x.max(0.0).powi(2), 2e-7),
        (XIELU, xielu, 1e-6),
    ];
    for (activation, exact, tolerance) in definitions {
        let mut reference = vec![f32::NAN; len];
        glu_on(Isa::Scalar, &Pool::new(1), &gate, &up, activation, &mut reference);
        for ((gate, up), y) in gate.iter().zip(&up).zip(&reference) {
            let exact = exact((*gate).into()) * f64::from(*up);
            let error = (f64::from(*y) - exact).abs();
            assert!(
                error <= tolerance * exact.abs() + 1e-30,
                "{activation:?}({gate}) · {up} is {y}, not {exact}"
            );
        }
        for &isa in Isa::supported() {
            let mut y = vec![f32::NAN; len];
            glu_on(isa, &Pool::new(3), &gate, &up, activation, &mut y);
            assert_eq!(bits(&y), bits(&reference), "{activation:?} on {isa}");
        }
    }
}

/// With an `alpha_n` below `beta`: otherwise it crosses zero, where no relative error is small.
const XIELU: Activation = Activation::Xielu { alpha_p: 0.75, alpha_n: 0.25, beta: 0.5, eps: -1e-6 };

fn xielu(x: f64) -> f64 {
    let below = 0.25 * (x.min(f64::from(-1e-6_f32)).exp_m1() - x);
    0.5 * x + if x > 0.0 { 0.75 * x * x } else { below }
}

fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

/// By its series near zero and its continued fraction in the tails.
fn normal_distribution(x: f64) -> f64 {
    let density = (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    if x.abs() < 3.0 {
        let terms = (0..100).scan(x, |term, n| {
            let this = *term;
            *term *= x * x / f64::from(2 * n + 3);
            Some(this)
        });
        let sum: f64 = terms.sum();
        return 0.5 + density * sum;
    }
    let tail = density / (1..200).rev().fold(x.abs(), |rest, n| x.abs() + f64::from(n) / rest);
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// `x / 2 (1 + tanh z)` as `x / (1 + e^-2z)`, which keeps its precision far below zero.
fn gelu(x: f64) -> f64 {
    x / (1.0 + (-2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).exp())
}

#[test]
fn nan_stays_nan() {
    for activation in [
        Activation::Silu,
        Activation::GeluTanh,
        Activation::Sigmoid,
        Activation::Gelu,
        Activation::QuickGelu,
        Activation::Relu,
        Activation::ReluSquared,
        XIELU,
    ] {
        let mut y = [0.0; 2];
        glu(&Pool::new(1), &[f32::NAN, 1.0], &[1.0, f32::NAN], activation, &mut y);
        assert!(y[0].is_nan() && y[1].is_nan());
    }
}

#[test]
fn sigmoid_and_clamped_gates_equal_the_definition() {
    let (alpha, limit) = (1.702_f32, 0.7_f32);
    let clamped = |gate: f64, up: f64| {
        let (alpha, limit) = (f64::from(alpha), f64::from(limit));
        let gate = gate.min(limit);
        gate / (1.0 + (-alpha * gate).exp()) * (up.clamp(-limit, limit) + 1.0)
    };
    let sigmoid = |gate: f64, up: f64| up / (1.0 + (-gate).exp());
    let values: Vec<f32> = (-30..=30).map(|x| x as f32 * 0.1).collect();
    for &gate in &values {
        let gates = vec![gate; values.len()];
        let mut y = vec![f32::NAN; values.len()];
        let close = |y: &[f32], exact: &dyn Fn(f64, f64) -> f64| {
            for (y, up) in y.iter().zip(&values) {
                let exact = exact(gate.into(), (*up).into());
                assert!((f64::from(*y) - exact).abs() < 1e-6, "{gate}, {up}: {y}, not {exact}");
            }
        };
        glu(&Pool::new(1), &gates, &values, Activation::Sigmoid, &mut y);
        close(&y, &sigmoid);
        glu(&Pool::new(1), &gates, &values, Activation::ClampedSwiglu { alpha, limit }, &mut y);
        close(&y, &clamped);
    }
}

#[test]
fn clamps_keep_nan() {
    let mut y = [0.0; 2];
    let activation = Activation::ClampedSwiglu { alpha: 1.702, limit: 7.0 };
    glu(&Pool::new(1), &[f32::NAN, 1.0], &[1.0, f32::NAN], activation, &mut y);
    assert!(y[0].is_nan() && y[1].is_nan());
}
