//! Linear layer with a bias and an activation.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Dispatch, TensorMetadata, backend_extension};
use burn::tensor::Tensor;

use super::backend::{Bridge, on_every_backend};
use super::weight::Matrix;
use super::{Op, Weight, glu};
use crate::host;
use crate::host::{Activation, Pool};
use crate::host::{Input, Output, Then};

pub(super) const OP: Op = Op { name: "linear_bias", summary: "activation(x · Wᵀ + bias)" };

/// Adds `bias` to each row of the result of [`linear`](super::linear()) and applies the activation, if there
/// is one. An activation that gates a second number gates 1.
///
/// # Shapes
/// - `x`: `[rows, in]`, the weight `[out, in]`, `bias`: `[out]`; returns `[rows, out]`
///
/// # Panics
/// When shapes do not fit, or the weight is on another device.
pub fn linear_bias(
    x: Tensor<2>,
    weight: &Weight,
    bias: Tensor<1>,
    activation: Option<Activation>,
) -> Tensor<2> {
    let [_, size] = x.dims();
    assert_eq!(size, weight.cols(), "linear_bias: a row of x must be as long as a row of the weight");
    assert_eq!(bias.dims(), [weight.rows()], "linear_bias: the bias must be as long as a row of the result");
    weight.record(&x);
    let (x, bias) = (x.into_dispatch(), bias.into_dispatch());
    Tensor::from_dispatch(Dispatch::linear_bias(x, weight.matrix().clone(), bias, activation))
}

/// Backend operation of [`linear_bias`].
#[backend_extension(Flex, NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "wgpu"))]
pub trait LinearBiasOp: Bridge {
    fn linear_bias(
        x: FloatTensor<Self>,
        #[extension_type] weight: Matrix<Self>,
        bias: FloatTensor<Self>,
        activation: Option<Activation>,
    ) -> FloatTensor<Self> {
        match (Self::HOST, weight) {
            (Some(tensors), Matrix::Host(weight)) => {
                let (rows, bias) = (x.shape()[0], tensors.values(&bias));
                let then = activation.map_or(Then::Store, Then::Activate);
                tensors.map([rows, weight.rows()], x, |x, y| {
                    let output = Output { w: &weight, bias: Some(&bias), then, y };
                    host::linears(Pool::global(), Input { x, rows, norm: None }, &mut [output]);
                })
            }
            (_, weight) => Self::lower(portable(Self::lift(x), weight, Self::lift(bias), activation)),
        }
    }
}

on_every_backend!(LinearBiasOp);

pub(super) fn portable<B: Bridge>(
    x: Tensor<2>,
    weight: Matrix<B>,
    bias: Tensor<1>,
    activation: Option<Activation>,
) -> Tensor<2> {
    let y = weight.multiply(x) + bias.unsqueeze();
    match activation {
        None => y,
        Some(activation) => {
            let ones = Tensor::ones(y.dims(), &y.device());
            glu::portable(y, ones, activation)
        }
    }
}
