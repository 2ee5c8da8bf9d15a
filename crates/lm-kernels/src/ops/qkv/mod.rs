//! Fused norm and query, key and value projections.

pub(super) mod host;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, ExtensionType};
use burn::tensor::Tensor;

use super::backend::{Bridge, LmOps};
use super::weight::Matrix;
use super::{Op, Weight, rms_norm};

pub(super) const OP: Op = Op { name: "qkv", summary: "three linear layers over the same normed rows" };

/// Queries, keys and values: `[rows, out]` each.
#[derive(ExtensionType)]
pub struct Qkv<B: Backend> {
    pub q: FloatTensor<B>,
    pub k: FloatTensor<B>,
    pub v: FloatTensor<B>,
}

/// Normalises each row of `x` like [`rms_norm`](super::rms_norm()) and multiplies it by three weights like
/// [`linear`](super::linear()), with bit-identical results.
///
/// # Shapes
/// - `x`: `[rows, in]`, `norm`: `[in]`, the weights `[out, in]`; returns three times `[rows, out]`
///
/// # Panics
/// When shapes do not fit, or a weight is on another device.
pub fn qkv(x: Tensor<2>, norm: Tensor<1>, eps: f32, weights: [&Weight; 3]) -> [Tensor<2>; 3] {
    let [_, size] = x.dims();
    assert_eq!(norm.dims(), [size], "qkv: the norm's weight must be as long as a row of x");
    weights
        .iter()
        .for_each(|w| assert_eq!(size, w.cols(), "qkv: a row of x must be as long as a row of a weight"));
    let [q, k, v] = weights.map(|weight| weight.matrix().clone());
    let Qkv { q, k, v } = Dispatch::qkv(x.into_dispatch(), norm.into_dispatch(), eps, q, k, v);
    [q, k, v].map(Tensor::from_dispatch)
}

pub(super) fn portable<B: Bridge>(
    x: Tensor<2>,
    norm: Tensor<1>,
    eps: f32,
    weights: [Matrix<B>; 3],
) -> Qkv<B> {
    let x = rms_norm::portable(x, norm, eps);
    let [q, k, v] = weights.map(|weight| B::lower(weight.multiply(x.clone())));
    Qkv { q, k, v }
}
