//! Linear layer with a fused residual add.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Dispatch, TensorMetadata, backend_extension};
use burn::tensor::Tensor;

use super::backend::{Bridge, on_every_backend};
use super::bias::Bias;
use super::weight::Matrix;
use super::{Op, Weight};
use crate::host;
use crate::host::Pool;
use crate::host::{Input, Output, Then};

pub(super) const OP: Op = Op { name: "linear_add", summary: "residual + (x · Wᵀ + bias)" };

/// Adds the result of [`linear`](super::linear()), or of [`linear_bias`](super::linear_bias()) without an
/// activation if there is a bias, to `residual`, in place if it is not shared.
///
/// # Shapes
/// - `x`: `[rows, in]`, the weight `[out, in]`, `bias`: `[out]`, `residual`: `[rows, out]`; returns the shape
///   of `residual`
///
/// # Panics
/// When shapes do not fit, or the weight is on another device.
pub fn linear_add(x: Tensor<2>, weight: &Weight, bias: Option<Tensor<1>>, residual: Tensor<2>) -> Tensor<2> {
    let [rows, size] = x.dims();
    assert_eq!(size, weight.cols(), "linear_add: a row of x must be as long as a row of the weight");
    assert_eq!(
        residual.dims(),
        [rows, weight.rows()],
        "linear_add: the residual must have the result's shape"
    );
    weight.record(&x);
    let bias = Bias::of(OP, bias, weight);
    let (x, residual) = (x.into_dispatch(), residual.into_dispatch());
    Tensor::from_dispatch(Dispatch::linear_add(x, weight.matrix().clone(), bias, residual))
}

/// Backend operation of [`linear_add`].
#[backend_extension(Flex, NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "wgpu"))]
pub trait LinearAddOp: Bridge {
    fn linear_add(
        x: FloatTensor<Self>,
        #[extension_type] weight: Matrix<Self>,
        #[extension_type] bias: Bias<Self>,
        residual: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        match (Self::HOST, weight) {
            (Some(tensors), Matrix::Host(weight)) => {
                let (rows, values) = (x.shape()[0], tensors.values(&x));
                let input = Input { x: &values, rows, norm: None };
                let bias = bias.values(&tensors);
                let sum = tensors.update(residual, |y| {
                    let output = Output { w: &weight, bias: bias.as_deref(), then: Then::Add, y };
                    host::linears(Pool::global(), input, &mut [output]);
                });
                drop(values);
                tensors.reuse(x);
                sum
            }
            (_, weight) => Self::lower(portable(Self::lift(x), weight, bias, Self::lift(residual))),
        }
    }
}

on_every_backend!(LinearAddOp);

pub(super) fn portable<B: Bridge>(
    x: Tensor<2>,
    weight: Matrix<B>,
    bias: Bias<B>,
    residual: Tensor<2>,
) -> Tensor<2> {
    residual + bias.add_to(weight.multiply(x))
}
