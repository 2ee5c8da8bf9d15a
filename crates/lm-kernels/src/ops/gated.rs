//! Fused norm, gate and up projections of a gated MLP.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Dispatch, TensorMetadata, backend_extension};
use burn::tensor::Tensor;

use super::backend::{Bridge, on_every_backend};
use super::glu::{self, glu};
use super::linear::linear;
use super::rms_norm::{self, rms_norm};
use super::weight::Matrix;
use super::{Op, Weight, buffer_pool};
use crate::host;
use crate::host::{Activation, Pool};
use crate::host::{Input, Norm};

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
    if gate.inputs().or(up.inputs()).is_some() {
        let x = rms_norm(x, norm, eps);
        return glu(linear(x.clone(), gate), linear(x, up), activation);
    }
    let (gate, up) = (gate.matrix().clone(), up.matrix().clone());
    Tensor::from_dispatch(Dispatch::gated(x.into_dispatch(), norm.into_dispatch(), eps, gate, up, activation))
}

/// Backend operation of [`gated`].
#[backend_extension(Flex, NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "wgpu"))]
pub trait GatedOp: Bridge {
    fn gated(
        x: FloatTensor<Self>,
        norm: FloatTensor<Self>,
        eps: f32,
        #[extension_type] gate: Matrix<Self>,
        #[extension_type] up: Matrix<Self>,
        activation: Activation,
    ) -> FloatTensor<Self> {
        match (Self::HOST, gate, up) {
            (Some(tensors), Matrix::Host(gate), Matrix::Host(up)) => {
                let rows = x.shape()[0];
                let mut y = buffer_pool::take(rows * gate.rows());
                let (x, weight) = (tensors.values(&x), tensors.values(&norm));
                let input = Input { x: &x, rows, norm: Some(Norm { weight: &weight, eps }) };
                host::gated(Pool::global(), input, &gate, &up, activation, &mut y);
                tensors.create(y, [rows, gate.rows()])
            }
            (_, gate, up) => {
                Self::lower(portable(Self::lift(x), Self::lift(norm), eps, gate, up, activation))
            }
        }
    }
}

on_every_backend!(GatedOp);

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
