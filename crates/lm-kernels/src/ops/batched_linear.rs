//! Several linear layers of one shape, each over rows of its own.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Dispatch, TensorMetadata, backend_extension};
use burn::tensor::Tensor;

use super::backend::{Bridge, on_every_backend};
use super::weight::Matrix;
use super::{Op, Weight};
use crate::host;
use crate::host::Pool;

pub(super) const OP: Op =
    Op { name: "batched_linear", summary: "x[i] · W[i]ᵀ for several matrices of one shape" };

/// Batched matrix product: the rows of each part of `x` times the matrix of the same index, transposed. The
/// weight stacks the matrices, the rows of one following those of the previous one.
///
/// A row's result is that of [`linear`](super::linear()) with its matrix.
///
/// # Shapes
/// - `x`: `[count, rows, in]`, the weight `[count * out, in]`; returns `[count, rows, out]`
///
/// # Panics
/// When shapes do not fit, or the weight is on another device.
pub fn batched_linear(x: Tensor<3>, weight: &Weight) -> Tensor<3> {
    let [count, rows, size] = x.dims();
    assert_eq!(size, weight.cols(), "batched_linear: a row of x must be as long as a row of the weight");
    assert!(count > 0 && weight.rows().is_multiple_of(count), "batched_linear: weight against {count} parts");
    weight.record(&x.clone().reshape([count * rows, size]));
    Tensor::from_dispatch(Dispatch::batched_linear(x.into_dispatch(), weight.matrix().clone()))
}

/// Backend operation of [`batched_linear`].
#[backend_extension(Flex, NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "wgpu"))]
pub trait BatchedLinearOp: Bridge {
    fn batched_linear(x: FloatTensor<Self>, #[extension_type] weight: Matrix<Self>) -> FloatTensor<Self> {
        match (Self::HOST, weight) {
            (Some(tensors), Matrix::Host(weight)) => {
                let [count, rows] = [x.shape()[0], x.shape()[1]];
                tensors.map([count, rows, weight.rows() / count], x, |x, y| {
                    host::batched_linear(Pool::global(), &weight, count, x, y);
                })
            }
            (_, weight) => Self::lower(portable(Self::lift(x), &weight)),
        }
    }
}

on_every_backend!(BatchedLinearOp);

pub(super) fn portable<B: Bridge>(x: Tensor<3>, weight: &Matrix<B>) -> Tensor<3> {
    let [count, rows, size] = x.dims();
    let out = weight.rows() / count;
    let product = |index: usize| {
        let x = x.clone().narrow(0, index, 1).reshape([rows, size]);
        weight.multiply_part(index * out..(index + 1) * out, x).unsqueeze()
    };
    Tensor::cat((0..count).map(product).collect(), 0)
}
