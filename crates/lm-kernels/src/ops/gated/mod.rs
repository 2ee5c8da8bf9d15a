//! Fused norm, gate and up projections of a gated MLP.

pub(super) mod host;

use burn::backend::Dispatch;
use burn::tensor::Tensor;

use super::backend::{Bridge, LmOps};
use super::weight::Matrix;
use super::{Op, Weight, glu, rms_norm};
use crate::Activation;

pub(super) const OP: Op =
    Op { name: "gated", summary: "activation(x · Wᵀ of the gate) · (x · Wᵀ of up), x normed" };

/// Normalises each row of `x` like [`rms_norm`](super::rms_norm()), multiplies it by two weights like
/// [`linear`](super::linear()), and gates the second result by the first.
///
/// # Shapes
/// - `x`: `[rows, in]`, `norm`: `[in]`, both weights `[out, in]`; returns `[rows, out]`
///
/// # Panics
/// When shapes do not fit, or a weight is on another device.
///
/// # Source
/// Shazeer, arXiv 2002.05202.
pub fn gated(
    x: Tensor<2>,
    norm: Tensor<1>,
    eps: f32,
    gate: &Weight,
    up: &Weight,
    activation: Activation,
) -> Tensor<2> {
    let [_, size] = x.dims();
    assert_eq!(norm.dims(), [size], "gated: the norm's weight must be as long as a row of x");
    assert_eq!([gate.cols(), up.cols()], [size; 2], "gated: a row of x must be as long as a row of a weight");
    assert_eq!(gate.rows(), up.rows(), "gated: gate and up must give as many results");
    let (gate, up) = (gate.matrix().clone(), up.matrix().clone());
    Tensor::from_dispatch(Dispatch::gated(x.into_dispatch(), norm.into_dispatch(), eps, gate, up, activation))
}

pub(super) fn portable<B: Bridge>(
    x: Tensor<2>,
    norm: Tensor<1>,
    eps: f32,
    gate: Matrix<B>,
    up: Matrix<B>,
    activation: Activation,
) -> Tensor<2> {
    let x = rms_norm::portable(x, norm, eps);
    let gate = gate.multiply(x.clone());
    glu::portable(gate, up.multiply(x), activation)
}
