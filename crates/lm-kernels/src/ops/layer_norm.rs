//! Layer normalisation (LayerNorm).

use burn::backend::tensor::FloatTensor;
use burn::backend::{Dispatch, TensorMetadata, backend_extension};
use burn::tensor::Tensor;

use super::Op;
use super::backend::{Bridge, on_every_backend};
use crate::host;
use crate::host::{LayerNorm, Pool};

pub(super) const OP: Op =
    Op { name: "layer_norm", summary: "(x - mean(x)) / sqrt(var(x) + eps) · weight + bias, per row" };

/// Centres each row of `x`, divides it by its standard deviation, and maps each column by `weight` and
/// `bias`.
///
/// # Shapes
/// - `x`: `[rows, size]`; returns the same shape
/// - `weight`, `bias`: `[size]`
///
/// # Panics
/// When `weight` or `bias` is not as long as a row of `x`.
///
/// # Source
/// Ba, Kiros and Hinton, arXiv 1607.06450; the variance is that of the row, not of a sample, and `eps` is
/// inside the root.
pub fn layer_norm(x: Tensor<2>, weight: Tensor<1>, bias: Tensor<1>, eps: f32) -> Tensor<2> {
    let [_, size] = x.dims();
    assert_eq!(weight.dims(), [size], "layer_norm: weight must be as long as a row of x");
    assert_eq!(bias.dims(), [size], "layer_norm: bias must be as long as a row of x");
    let (weight, bias) = (weight.into_dispatch(), bias.into_dispatch());
    Tensor::from_dispatch(Dispatch::layer_norm(x.into_dispatch(), weight, bias, eps))
}

/// Backend operation of [`layer_norm`].
#[backend_extension(Flex, NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "wgpu"))]
pub trait LayerNormOp: Bridge {
    fn layer_norm(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        eps: f32,
    ) -> FloatTensor<Self> {
        let Some(tensors) = Self::HOST else {
            return Self::lower(portable(Self::lift(x), Self::lift(weight), Self::lift(bias), eps));
        };
        let (weight, bias) = (tensors.values(&weight), tensors.values(&bias));
        let norm = LayerNorm { weight: &weight, bias: &bias, eps };
        tensors.map(x.shape(), x, |x, y| host::layer_norm(Pool::global(), x, norm, y))
    }
}

on_every_backend!(LayerNormOp);

pub(super) fn portable(x: Tensor<2>, weight: Tensor<1>, bias: Tensor<1>, eps: f32) -> Tensor<2> {
    let centred = x.clone() - x.mean_dim(1); // [rows, size]
    let variance = centred.clone().square().mean_dim(1); // [rows, 1]
    let normed = centred / (variance + eps).sqrt();
    normed * weight.unsqueeze() + bias.unsqueeze()
}
