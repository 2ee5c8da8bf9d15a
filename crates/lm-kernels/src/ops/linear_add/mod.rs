//! Linear layer with a fused residual add.

pub(super) mod host;

use burn::backend::Dispatch;
use burn::tensor::Tensor;

use super::backend::{Bridge, LmOps};
use super::weight::Matrix;
use super::{Op, Weight};

pub(super) const OP: Op = Op { name: "linear_add", summary: "residual + x · Wᵀ" };

/// Adds the result of [`linear`](super::linear()) to `residual`, in place if it is not shared.
///
/// # Shapes
/// - `x`: `[rows, in]`, the weight `[out, in]`, `residual`: `[rows, out]`; returns the shape of `residual`
///
/// # Panics
/// When shapes do not fit, or the weight is on another device.
pub fn linear_add(x: Tensor<2>, weight: &Weight, residual: Tensor<2>) -> Tensor<2> {
    let [rows, size] = x.dims();
    assert_eq!(size, weight.cols(), "linear_add: a row of x must be as long as a row of the weight");
    assert_eq!(
        residual.dims(),
        [rows, weight.rows()],
        "linear_add: the residual must have the result's shape"
    );
    let (x, residual) = (x.into_dispatch(), residual.into_dispatch());
    Tensor::from_dispatch(Dispatch::linear_add(x, weight.matrix().clone(), residual))
}

pub(super) fn portable<B: Bridge>(x: Tensor<2>, weight: Matrix<B>, residual: Tensor<2>) -> Tensor<2> {
    residual + weight.multiply(x)
}
