//! Linear layer.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Dispatch, TensorMetadata, backend_extension};
use burn::tensor::Tensor;

use super::backend::{Bridge, on_every_backend};
use super::weight::Matrix;
use super::{Op, Weight};
use crate::host;
use crate::host::Pool;

pub(super) const OP: Op = Op { name: "linear", summary: "x · Wᵀ for weights in any format" };

/// Multiplies each row of `x` by the transposed weight.
///
/// In the Q formats the host quantises each row of `x` to 8-bit integers as well (see [`host`](crate::host));
/// other devices multiply the dequantised weight by `x` in f32.
///
/// # Shapes
/// - `x`: `[rows, in]`, the weight `[out, in]`; returns `[rows, out]`
///
/// # Panics
/// When a row of `x` is not as long as a row of the weight, or the weight is on another device.
pub fn linear(x: Tensor<2>, weight: &Weight) -> Tensor<2> {
    let [_, size] = x.dims();
    assert_eq!(size, weight.cols(), "linear: a row of x must be as long as a row of the weight");
    weight.record(&x);
    Tensor::from_dispatch(Dispatch::linear(x.into_dispatch(), weight.matrix().clone()))
}

/// Backend operation of [`linear`].
#[backend_extension(Flex, NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "wgpu"))]
pub trait LinearOp: Bridge {
    fn linear(x: FloatTensor<Self>, #[extension_type] weight: Matrix<Self>) -> FloatTensor<Self> {
        match (Self::HOST, weight) {
            (Some(tensors), Matrix::Host(weight)) => {
                let rows = x.shape()[0];
                tensors.map([rows, weight.rows()], x, |x, y| {
                    host::linear(Pool::global(), &weight, x, rows, y);
                })
            }
            (_, weight) => Self::lower(portable(Self::lift(x), weight)),
        }
    }
}

on_every_backend!(LinearOp);

pub(super) fn portable<B: Bridge>(x: Tensor<2>, weight: Matrix<B>) -> Tensor<2> {
    weight.multiply(x)
}
