//! Root-mean-square normalisation (RMSNorm).

use burn::backend::tensor::FloatTensor;
use burn::backend::{Dispatch, TensorMetadata, backend_extension};
use burn::tensor::Tensor;

use super::Op;
use super::backend::{Bridge, on_every_backend};
use crate::host;
use crate::host::Pool;

pub(super) const OP: Op = Op { name: "rms_norm", summary: "x / sqrt(mean(x²) + eps) · weight, per row" };

/// Normalises each row of `x` by its root mean square and scales it by `weight`.
///
/// # Shapes
/// - `x`: `[rows, size]`; returns the same shape. For a per-head norm, reshape to `[rows * heads, head_dim]`
/// - `weight`: `[size]`
///
/// # Panics
/// When `weight` is not as long as a row of `x`.
///
/// # Source
/// Zhang and Sennrich, arXiv 1910.07467; `eps` is inside the root, as in the Llama reference code.
pub fn rms_norm(x: Tensor<2>, weight: Tensor<1>, eps: f32) -> Tensor<2> {
    let [_, size] = x.dims();
    assert_eq!(weight.dims(), [size], "rms_norm: weight must be as long as a row of x");
    Tensor::from_dispatch(Dispatch::rms_norm(x.into_dispatch(), weight.into_dispatch(), eps))
}

/// Backend operation of [`rms_norm`].
#[backend_extension(Flex, NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "wgpu"))]
pub trait RmsNormOp: Bridge {
    fn rms_norm(x: FloatTensor<Self>, weight: FloatTensor<Self>, eps: f32) -> FloatTensor<Self> {
        let Some(tensors) = Self::HOST else {
            return Self::lower(portable(Self::lift(x), Self::lift(weight), eps));
        };
        let weight = tensors.values(&weight);
        tensors.map(x.shape(), x, |x, y| host::rms_norm(Pool::global(), x, &weight, eps, y))
    }
}

on_every_backend!(RmsNormOp);

pub(super) fn portable(x: Tensor<2>, weight: Tensor<1>, eps: f32) -> Tensor<2> {
    let mean_square = x.clone().square().mean_dim(1); // [rows, 1]
    let normed = x / (mean_square + eps).sqrt(); // [rows, size]
    normed * weight.unsqueeze()
}
