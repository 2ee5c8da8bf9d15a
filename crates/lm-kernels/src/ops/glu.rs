//! Gated activation of MLP blocks (GLU variants).

use burn::backend::tensor::FloatTensor;
use burn::backend::{Dispatch, TensorMetadata, backend_extension};
use burn::tensor::Tensor;
use burn::tensor::activation::{gelu, relu, sigmoid, silu};

use super::Op;
use super::backend::{Bridge, on_every_backend};
use crate::host;
use crate::host::{Activation, Pool};

pub(super) const OP: Op = Op { name: "glu", summary: "activation(gate) · up, elementwise" };

/// Gates `up` by the [`Activation`] of `gate`: SwiGLU, GeGLU.
///
/// # Shapes
/// - `gate`, `up`: `[rows, size]`; returns the same shape
///
/// # Panics
/// When the shapes differ.
///
/// # Source
/// Shazeer, arXiv 2002.05202.
pub fn glu(gate: Tensor<2>, up: Tensor<2>, activation: Activation) -> Tensor<2> {
    assert_eq!(gate.dims(), up.dims(), "glu: gate and up must have one shape");
    Tensor::from_dispatch(Dispatch::glu(gate.into_dispatch(), up.into_dispatch(), activation))
}

/// Backend operation of [`glu`].
#[backend_extension(Flex, NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "wgpu"))]
pub trait GluOp: Bridge {
    fn glu(gate: FloatTensor<Self>, up: FloatTensor<Self>, activation: Activation) -> FloatTensor<Self> {
        let Some(tensors) = Self::HOST else {
            return Self::lower(portable(Self::lift(gate), Self::lift(up), activation));
        };
        let y = tensors.map(gate.shape(), gate, |gate, y| {
            host::glu(Pool::global(), gate, &tensors.values(&up), activation, y);
        });
        tensors.reuse(up);
        y
    }
}

on_every_backend!(GluOp);

pub(super) fn portable(gate: Tensor<2>, up: Tensor<2>, activation: Activation) -> Tensor<2> {
    match activation {
        Activation::Silu => silu(gate) * up,
        Activation::Sigmoid => sigmoid(gate) * up,
        Activation::QuickGelu => gate.clone() * sigmoid(gate * 1.702) * up,
        Activation::Gelu => gelu(gate) * up,
        Activation::Relu => relu(gate) * up,
        Activation::ReluSquared => relu(gate).square() * up,
        Activation::GeluTanh => {
            let inner = (gate.clone().powi_scalar(3) * 0.044_715 + gate.clone())
                * (2.0 / std::f32::consts::PI).sqrt();
            gate * 0.5 * (inner.tanh() + 1.0) * up
        }
        Activation::Xielu { alpha_p, alpha_n, beta, eps } => {
            let below = (gate.clone().clamp_max(eps).exp() - 1.0 - gate.clone()) * alpha_n;
            let above = gate.clone().square() * alpha_p;
            let curved = below.mask_where(gate.clone().greater_elem(0.0), above);
            (curved + gate * beta) * up
        }
        Activation::ClampedSwiglu { alpha, limit } => {
            let gate = gate.clamp_max(limit);
            gate.clone() * sigmoid(gate * alpha) * (up.clamp(-limit, limit) + 1.0)
        }
    }
}
