//! The gated activation of SwiGLU feed-forward blocks.

pub(super) mod host;

use burn::backend::Dispatch;
use burn::tensor::Tensor;
use burn::tensor::activation::silu;

use super::Op;
use super::backend::LmOps;

pub(super) const OP: Op = Op { name: "swiglu", summary: "silu(gate) · up, elementwise" };

/// Gates `up` by `silu(gate)`, where `silu(x) = x / (1 + exp(-x))`.
///
/// # Shapes
/// - `gate`, `up`: `[rows, size]`; returns the same shape
///
/// # Panics
/// When the shapes differ.
///
/// # Source
/// Shazeer, arXiv 2002.05202.
pub fn swiglu(gate: Tensor<2>, up: Tensor<2>) -> Tensor<2> {
    assert_eq!(gate.dims(), up.dims(), "swiglu: gate and up must have one shape");
    Tensor::from_dispatch(Dispatch::swiglu(gate.into_dispatch(), up.into_dispatch()))
}

pub(super) fn portable(gate: Tensor<2>, up: Tensor<2>) -> Tensor<2> {
    silu(gate) * up
}
