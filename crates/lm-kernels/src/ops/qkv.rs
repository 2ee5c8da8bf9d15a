//! Fused norm and query, key and value projections.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, ExtensionType, TensorMetadata, backend_extension};
use burn::tensor::Tensor;

use super::backend::{Bridge, on_every_backend};
use super::bias::Bias;
use super::linear::linear;
use super::linear_bias::linear_bias;
use super::rms_norm::{self, rms_norm};
use super::weight::Matrix;
use super::{Op, Weight, buffer_pool};
use crate::host;
use crate::host::Pool;
use crate::host::{Input, Norm, Output, Then};

pub(super) const OP: Op =
    Op { name: "qkv", summary: "three linear layers, with or without biases, over the same normed rows" };

/// Queries, keys and values: `[rows, out]` each.
#[derive(ExtensionType)]
pub struct Qkv<B: Backend> {
    pub q: FloatTensor<B>,
    pub k: FloatTensor<B>,
    pub v: FloatTensor<B>,
}

/// Biases of the three projections, as an operation argument.
#[derive(ExtensionType)]
pub struct QkvBiases<B: Backend> {
    #[extension_type]
    pub q: Bias<B>,
    #[extension_type]
    pub k: Bias<B>,
    #[extension_type]
    pub v: Bias<B>,
}

/// Normalises each row of `x` like [`rms_norm`](super::rms_norm()) and multiplies it by three weights like
/// [`linear`](super::linear()), or like [`linear_bias`](super::linear_bias()) where there is a bias, with
/// bit-identical results.
///
/// # Shapes
/// - `x`: `[rows, in]`, `norm`: `[in]`, the weights `[out, in]`, the biases `[out]`; returns three times
///   `[rows, out]`
///
/// # Panics
/// When shapes do not fit, or a weight is on another device.
pub fn qkv(
    x: Tensor<2>,
    norm: Tensor<1>,
    eps: f32,
    weights: [&Weight; 3],
    biases: [Option<Tensor<1>>; 3],
) -> [Tensor<2>; 3] {
    let [_, size] = x.dims();
    assert_eq!(norm.dims(), [size], "qkv: the norm's weight must be as long as a row of x");
    weights
        .iter()
        .for_each(|w| assert_eq!(size, w.cols(), "qkv: a row of x must be as long as a row of a weight"));
    let [of_q, of_k, of_v] = biases;
    let [q, k, v] = weights;
    if weights.iter().any(|weight| weight.inputs().is_some()) {
        let x = rms_norm(x, norm, eps);
        return [(q, of_q), (k, of_k), (v, of_v)].map(|(weight, bias)| match bias {
            None => linear(x.clone(), weight),
            Some(bias) => linear_bias(x.clone(), weight, bias, None),
        });
    }
    let biases = QkvBiases { q: Bias::of(OP, of_q, q), k: Bias::of(OP, of_k, k), v: Bias::of(OP, of_v, v) };
    let [q, k, v] = weights.map(|weight| weight.matrix().clone());
    let Qkv { q, k, v } = Dispatch::qkv(x.into_dispatch(), norm.into_dispatch(), eps, q, k, v, biases);
    [q, k, v].map(Tensor::from_dispatch)
}

/// Backend operation of [`qkv`].
#[backend_extension(Flex, NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "wgpu"))]
pub trait QkvOp: Bridge {
    fn qkv(
        x: FloatTensor<Self>,
        norm: FloatTensor<Self>,
        eps: f32,
        #[extension_type] q: Matrix<Self>,
        #[extension_type] k: Matrix<Self>,
        #[extension_type] v: Matrix<Self>,
        #[extension_type] biases: QkvBiases<Self>,
    ) -> Qkv<Self> {
        match (Self::HOST, q, k, v) {
            (Some(tensors), Matrix::Host(q), Matrix::Host(k), Matrix::Host(v)) => {
                let (rows, weights) = (x.shape()[0], [&q, &k, &v]);
                let mut results = weights.map(|w| buffer_pool::take(rows * w.rows()));
                let (x, weight) = (tensors.values(&x), tensors.values(&norm));
                let input = Input { x: &x, rows, norm: Some(Norm { weight: &weight, eps }) };
                let [y_q, y_k, y_v] = &mut results;
                let biases = [&biases.q, &biases.k, &biases.v].map(|bias| bias.values(&tensors));
                let [of_q, of_k, of_v] = biases.each_ref().map(Option::as_deref);
                let mut outputs = [(&q, of_q, y_q), (&k, of_k, y_k), (&v, of_v, y_v)]
                    .map(|(w, bias, y)| Output { w, bias, then: Then::Store, y });
                host::linears(Pool::global(), input, &mut outputs);
                let [y_q, y_k, y_v] = results;
                Qkv {
                    q: tensors.create(y_q, [rows, q.rows()]),
                    k: tensors.create(y_k, [rows, k.rows()]),
                    v: tensors.create(y_v, [rows, v.rows()]),
                }
            }
            (_, q, k, v) => portable(Self::lift(x), Self::lift(norm), eps, [q, k, v], biases),
        }
    }
}

on_every_backend!(QkvOp);

pub(super) fn portable<B: Bridge>(
    x: Tensor<2>,
    norm: Tensor<1>,
    eps: f32,
    [q, k, v]: [Matrix<B>; 3],
    biases: QkvBiases<B>,
) -> Qkv<B> {
    let x = rms_norm::portable(x, norm, eps);
    let layer = |weight: Matrix<B>, bias: Bias<B>| B::lower(bias.add_to(weight.multiply(x.clone())));
    Qkv { q: layer(q, biases.q), k: layer(k, biases.k), v: layer(v, biases.v) }
}
