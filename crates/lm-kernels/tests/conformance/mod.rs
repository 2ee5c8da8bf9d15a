//! Every operation on every compiled device and element type against plain f64 loops.
//!
//! The loops are independent of the kernels, except for the packed weights' dequantised values. Shapes
//! and values are random from fixed seeds. A device that does not support a case prints one line.

#![cfg(feature = "burn")]

mod attention;
mod fused;
mod linear;
mod moe;
mod random;
mod rows;
mod states;

use lm_kernels::{ALL_OPS, Activation, Device, Error};

use random::Random;

/// A device under test.
pub struct Target {
    device: Device,
    burn: burn::tensor::Device,
}

/// Name of an operation and a function that runs all of its cases.
type Check = (&'static str, fn(&Target));

const CHECKS: &[Check] = &[
    ("attention", attention::check),
    ("batched_linear", linear::check_batched),
    ("delta_net", states::check_delta_net),
    ("embedding", linear::check_embedding),
    ("gated", fused::check_gated),
    ("glu", rows::check_glu),
    ("layer_norm", rows::check_layer_norm),
    ("linear", linear::check),
    ("linear_add", fused::check_linear_add),
    ("linear_bias", fused::check_linear_bias),
    ("mamba2", states::check_mamba2),
    ("moe", moe::check),
    ("qkv", fused::check_qkv),
    ("rms_norm", rows::check_rms_norm),
    ("rope", rows::check_rope),
    ("segment_attention", attention::check_segments),
    ("short_conv", states::check_short_conv),
];

const ACTIVATIONS: [Activation; 9] = [
    Activation::Silu,
    Activation::GeluTanh,
    Activation::ClampedSwiglu { alpha: 1.702, limit: 0.5 },
    Activation::Sigmoid,
    Activation::Gelu,
    Activation::QuickGelu,
    Activation::Relu,
    Activation::ReluSquared,
    Activation::Xielu { alpha_p: 0.7, alpha_n: 1.3, beta: 0.5, eps: -1e-6 },
];

/// The definition of an activation.
fn gate(activation: Activation, gate: f64, up: f64) -> f64 {
    match activation {
        Activation::Silu => gate / (1.0 + (-gate).exp()) * up,
        Activation::Sigmoid => up / (1.0 + (-gate).exp()),
        Activation::QuickGelu => gate / (1.0 + (-1.702 * gate).exp()) * up,
        Activation::Gelu => gate * normal_distribution(gate) * up,
        Activation::Relu => gate.max(0.0) * up,
        Activation::ReluSquared => gate.max(0.0).powi(2) * up,
        Activation::Xielu { alpha_p, alpha_n, beta, eps } => {
            let below = f64::from(alpha_n) * (gate.min(eps.into()).exp_m1() - gate);
            let curved = if gate > 0.0 { f64::from(alpha_p) * gate * gate } else { below };
            (curved + f64::from(beta) * gate) * up
        }
        Activation::GeluTanh => {
            let z = (2.0 / std::f64::consts::PI).sqrt() * (gate + 0.044715 * gate.powi(3));
            0.5 * gate * (1.0 + z.tanh()) * up
        }
        Activation::ClampedSwiglu { alpha, limit } => {
            let (gate, up) = (gate.min(limit.into()), up.clamp((-limit).into(), limit.into()));
            gate / (1.0 + (-f64::from(alpha) * gate).exp()) * (up + 1.0)
        }
    }
}

/// Half of the tail beyond 8 is below the precision of a double at 1; within, the series of
/// `(Φ(x) - 1/2) / φ(x)`.
fn normal_distribution(x: f64) -> f64 {
    if x.abs() > 8.0 {
        return if x < 0.0 { 0.0 } else { 1.0 };
    }
    let density = (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let terms = (0..300).scan(x, |term, n| {
        let this = *term;
        *term *= x * x / f64::from(2 * n + 3);
        Some(this)
    });
    let sum: f64 = terms.sum();
    0.5 + density * sum
}

fn check_all(device: Device) {
    let burn = match device.burn() {
        Ok(burn) => burn,
        Err(Error::NoAdapter { reason }) => {
            println!("skipped: conformance on {device}: no adapter: {reason}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let target = Target { device, burn };
    for op in ALL_OPS {
        let (_, check) = CHECKS.iter().find(|(name, _)| *name == op.name).expect("a check for each op");
        println!("{} on {device}: {}", op.name, op.summary);
        check(&target);
    }
}

#[test]
fn cpu_conforms() {
    check_all(Device::Cpu);
}

#[cfg(feature = "ndarray")]
#[test]
fn ndarray_conforms() {
    check_all(Device::NdArray);
}

#[cfg(feature = "wgpu")]
#[test]
fn gpu_conforms() {
    check_all(Device::Gpu);
}

#[test]
fn registry_is_sorted_and_complete() {
    let registry: Vec<_> = ALL_OPS.iter().map(|op| op.name).collect();
    let checked: Vec<_> = CHECKS.iter().map(|(name, _)| *name).collect();
    assert!(registry.is_sorted());
    assert_eq!(registry, checked);
}

#[test]
fn missing_device_error_names_its_feature() {
    for device in [Device::NdArray, Device::Gpu] {
        if !Device::available().contains(&device) {
            assert!(
                matches!(device.burn(), Err(Error::DeviceNotCompiled { device: named, .. }) if named == device.name())
            );
        }
    }
}

/// Fails if a value differs from the expected one by more than its tolerance.
fn assert_close(what: &str, got: &[f32], expected: &[f64], tolerance: impl Fn(usize) -> f64) {
    assert_eq!(got.len(), expected.len(), "{what}: length");
    for (index, (&got, &expected)) in got.iter().zip(expected).enumerate() {
        let error = (f64::from(got) - expected).abs();
        let allowed = tolerance(index);
        assert!(error <= allowed, "{what}: element {index} is {got}, expected {expected} ± {allowed}");
    }
}
