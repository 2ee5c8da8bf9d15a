//! The operations as a burn backend extension, and its implementations.

// burn-ndarray is deprecated upstream and kept here behind its feature; the types are named in generated code.
#![cfg_attr(feature = "ndarray", allow(deprecated))]

use std::sync::Arc;

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Dispatch, Flex, backend_extension};
use burn::tensor::{Int, Tensor};

use super::attention::{self, AttentionOutput, NewKv};
use super::kv_pool::KvLayer;
use super::moe::{self, Biases, ExpertShape};
use super::qkv::{self, Qkv};
use super::states::StatefulOutput;
use super::weight::Matrix;
use super::{delta_net, gated, glu, linear, linear_add, rms_norm, rope, short_conv};
use crate::{Activation, AttentionSpec, CausalConv, DeltaNet, RaggedLayout, RopeAngles, Routing, StatePages};

/// Conversion between a backend's own tensors and burn's device-independent [`Tensor`], so that the default
/// bodies of [`LmOps`] are ordinary tensor code.
pub trait Bridge: Backend {
    /// Wraps a float primitive of this backend.
    fn lift<const D: usize>(tensor: FloatTensor<Self>) -> Tensor<D>;
    /// Wraps an int primitive of this backend.
    fn lift_int<const D: usize>(tensor: IntTensor<Self>) -> Tensor<D, Int>;
    /// Unwraps the primitive.
    ///
    /// # Panics
    /// When the tensor is on another backend.
    fn lower<const D: usize>(tensor: Tensor<D>) -> FloatTensor<Self>;
    /// Unwraps the primitive of an int tensor.
    ///
    /// # Panics
    /// When the tensor is on another backend.
    fn lower_int<const D: usize>(tensor: Tensor<D, Int>) -> IntTensor<Self>;
}

impl Bridge for Dispatch {
    fn lift<const D: usize>(tensor: FloatTensor<Self>) -> Tensor<D> {
        Tensor::from_dispatch(tensor)
    }
    fn lift_int<const D: usize>(tensor: IntTensor<Self>) -> Tensor<D, Int> {
        Tensor::from_dispatch(tensor)
    }
    fn lower<const D: usize>(tensor: Tensor<D>) -> FloatTensor<Self> {
        tensor.into_dispatch()
    }
    fn lower_int<const D: usize>(tensor: Tensor<D, Int>) -> IntTensor<Self> {
        tensor.into_dispatch()
    }
}

macro_rules! bridge {
    ($backend:ty) => {
        impl Bridge for $backend {
            fn lift<const D: usize>(tensor: FloatTensor<Self>) -> Tensor<D> {
                Tensor::from_primitive::<Self>(tensor)
            }
            fn lift_int<const D: usize>(tensor: IntTensor<Self>) -> Tensor<D, Int> {
                Tensor::from_primitive::<Self>(tensor)
            }
            fn lower<const D: usize>(tensor: Tensor<D>) -> FloatTensor<Self> {
                tensor.try_into_primitive::<Self>().expect("a default body stays on the device of its inputs")
            }
            fn lower_int<const D: usize>(tensor: Tensor<D, Int>) -> IntTensor<Self> {
                tensor.try_into_primitive::<Self>().expect("a default body stays on the device of its inputs")
            }
        }
    };
}

bridge!(Flex);
#[cfg(feature = "ndarray")]
bridge!(burn_ndarray::NdArray);
#[cfg(feature = "wgpu")]
bridge!(burn_wgpu::CubeBackend);

/// Operations that a backend may override; the default bodies are plain burn tensor code.
///
/// Embedding lookup is not among them: it has no tensor input to select a backend by.
#[backend_extension(Flex, NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "wgpu"))]
pub trait LmOps: Bridge {
    /// See [`linear`](super::linear()).
    fn linear(x: FloatTensor<Self>, #[extension_type] weight: Matrix<Self>) -> FloatTensor<Self> {
        Self::lower(linear::portable(Self::lift(x), weight))
    }

    /// See [`linear_add`](super::linear_add()).
    fn linear_add(
        x: FloatTensor<Self>,
        #[extension_type] weight: Matrix<Self>,
        residual: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        Self::lower(linear_add::portable(Self::lift(x), weight, Self::lift(residual)))
    }

    /// See [`qkv`](super::qkv()).
    fn qkv(
        x: FloatTensor<Self>,
        norm: FloatTensor<Self>,
        eps: f32,
        #[extension_type] q: Matrix<Self>,
        #[extension_type] k: Matrix<Self>,
        #[extension_type] v: Matrix<Self>,
    ) -> Qkv<Self> {
        qkv::portable(Self::lift(x), Self::lift(norm), eps, [q, k, v])
    }

    /// See [`gated`](super::gated()).
    fn gated(
        x: FloatTensor<Self>,
        norm: FloatTensor<Self>,
        eps: f32,
        #[extension_type] gate: Matrix<Self>,
        #[extension_type] up: Matrix<Self>,
        activation: Activation,
    ) -> FloatTensor<Self> {
        Self::lower(gated::portable(Self::lift(x), Self::lift(norm), eps, gate, up, activation))
    }

    /// See [`glu`](super::glu()).
    fn glu(gate: FloatTensor<Self>, up: FloatTensor<Self>, activation: Activation) -> FloatTensor<Self> {
        Self::lower(glu::portable(Self::lift(gate), Self::lift(up), activation))
    }

    /// See [`moe`](super::moe()).
    fn moe(
        x: FloatTensor<Self>,
        #[extension_type] gate: Matrix<Self>,
        #[extension_type] up: Matrix<Self>,
        #[extension_type] down: Matrix<Self>,
        #[extension_type] biases: Biases<Self>,
        shape: ExpertShape,
        routing: Arc<Routing>,
    ) -> FloatTensor<Self> {
        Self::lower(moe::portable(Self::lift(x), [gate, up, down], biases, shape, &routing))
    }

    /// See [`rms_norm`](super::rms_norm()).
    fn rms_norm(x: FloatTensor<Self>, weight: FloatTensor<Self>, eps: f32) -> FloatTensor<Self> {
        Self::lower(rms_norm::portable(Self::lift(x), Self::lift(weight), eps))
    }

    /// See [`rope`](super::rope()).
    fn rope(x: FloatTensor<Self>, angles: Arc<RopeAngles>) -> FloatTensor<Self> {
        Self::lower(rope::portable(Self::lift(x), &angles))
    }

    /// See [`attention`](super::attention()). The cache of the layer is moved in and returned, so that it is
    /// updated in place.
    fn attention(
        q: FloatTensor<Self>,
        #[extension_type] new: NewKv<Self>,
        #[extension_type] cache: KvLayer<Self>,
        layout: Arc<RaggedLayout>,
        spec: AttentionSpec,
    ) -> AttentionOutput<Self> {
        let (out, cache) = attention::portable(Self::lift(q), new, cache, &layout, &spec);
        AttentionOutput { out: Self::lower(out), cache }
    }

    /// See [`short_conv`](super::short_conv()). The states of the layer are moved in and returned.
    fn short_conv(
        x: FloatTensor<Self>,
        conv: Arc<CausalConv>,
        states: StatePages,
        layout: Arc<RaggedLayout>,
    ) -> StatefulOutput<Self> {
        let mut states = states;
        let out = short_conv::portable(Self::lift(x), &conv, &mut states, &layout);
        StatefulOutput { out: Self::lower(out), states }
    }

    /// See [`delta_net`](super::delta_net()). The states of the layer are moved in and returned.
    fn delta_net(
        qkv: FloatTensor<Self>,
        dt: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        net: Arc<DeltaNet>,
        states: StatePages,
        layout: Arc<RaggedLayout>,
    ) -> StatefulOutput<Self> {
        let (dt, beta, mut states) = (Self::lift(dt), Self::lift(beta), states);
        let out = delta_net::portable(Self::lift(qkv), dt, beta, &net, &mut states, &layout);
        StatefulOutput { out: Self::lower(out), states }
    }
}

/// Implements [`LmOps`] with the slice kernels, for a backend whose tensors are slices of host memory.
macro_rules! host_ops {
    ($backend:ty) => {
        impl LmOps for $backend {
            fn linear(x: FloatTensor<Self>, weight: Matrix<Self>) -> FloatTensor<Self> {
                match weight {
                    Matrix::Host(matrix) => linear::host::linear(x, &matrix),
                    on_device => Self::lower(linear::portable(Self::lift(x), on_device)),
                }
            }

            fn linear_add(
                x: FloatTensor<Self>,
                weight: Matrix<Self>,
                residual: FloatTensor<Self>,
            ) -> FloatTensor<Self> {
                match weight {
                    Matrix::Host(matrix) => linear_add::host::linear_add(x, &matrix, residual),
                    on_device => {
                        Self::lower(linear_add::portable(Self::lift(x), on_device, Self::lift(residual)))
                    }
                }
            }

            fn qkv(
                x: FloatTensor<Self>,
                norm: FloatTensor<Self>,
                eps: f32,
                q: Matrix<Self>,
                k: Matrix<Self>,
                v: Matrix<Self>,
            ) -> Qkv<Self> {
                match (&q, &k, &v) {
                    (Matrix::Host(q), Matrix::Host(k), Matrix::Host(v)) => {
                        let [q, k, v] = qkv::host::qkv(x, norm, eps, [q, k, v]);
                        Qkv { q, k, v }
                    }
                    _ => qkv::portable(Self::lift(x), Self::lift(norm), eps, [q, k, v]),
                }
            }

            fn gated(
                x: FloatTensor<Self>,
                norm: FloatTensor<Self>,
                eps: f32,
                gate: Matrix<Self>,
                up: Matrix<Self>,
                activation: Activation,
            ) -> FloatTensor<Self> {
                match (&gate, &up) {
                    (Matrix::Host(gate), Matrix::Host(up)) => {
                        gated::host::gated(x, norm, eps, gate, up, activation)
                    }
                    _ => Self::lower(gated::portable(
                        Self::lift(x),
                        Self::lift(norm),
                        eps,
                        gate,
                        up,
                        activation,
                    )),
                }
            }

            fn glu(
                gate: FloatTensor<Self>,
                up: FloatTensor<Self>,
                activation: Activation,
            ) -> FloatTensor<Self> {
                glu::host::glu(gate, up, activation)
            }

            fn moe(
                x: FloatTensor<Self>,
                gate: Matrix<Self>,
                up: Matrix<Self>,
                down: Matrix<Self>,
                biases: Biases<Self>,
                shape: ExpertShape,
                routing: Arc<Routing>,
            ) -> FloatTensor<Self> {
                match (&gate, &up, &down) {
                    (Matrix::Host(gate), Matrix::Host(up), Matrix::Host(down)) => {
                        moe::host::moe(x, [gate, up, down], biases, shape, &routing)
                    }
                    _ => Self::lower(moe::portable(Self::lift(x), [gate, up, down], biases, shape, &routing)),
                }
            }

            fn rms_norm(x: FloatTensor<Self>, weight: FloatTensor<Self>, eps: f32) -> FloatTensor<Self> {
                rms_norm::host::rms_norm(x, weight, eps)
            }

            fn rope(x: FloatTensor<Self>, angles: Arc<RopeAngles>) -> FloatTensor<Self> {
                rope::host::rope(x, &angles)
            }

            fn attention(
                q: FloatTensor<Self>,
                new: NewKv<Self>,
                cache: KvLayer<Self>,
                layout: Arc<RaggedLayout>,
                spec: AttentionSpec,
            ) -> AttentionOutput<Self> {
                match cache {
                    KvLayer::Host(mut pages) => {
                        let new = match new {
                            NewKv::Rows { k, v } => Some((k, v)),
                            NewKv::Shared => None,
                        };
                        let out = attention::host::attention(q, new, &mut pages, &layout, &spec);
                        AttentionOutput { out, cache: KvLayer::Host(pages) }
                    }
                    on_device => {
                        let (out, cache) = attention::portable(Self::lift(q), new, on_device, &layout, &spec);
                        AttentionOutput { out: Self::lower(out), cache }
                    }
                }
            }

            fn short_conv(
                x: FloatTensor<Self>,
                conv: Arc<CausalConv>,
                states: StatePages,
                layout: Arc<RaggedLayout>,
            ) -> StatefulOutput<Self> {
                let mut states = states;
                let out = short_conv::host::short_conv(x, &conv, &mut states, &layout);
                StatefulOutput { out, states }
            }

            fn delta_net(
                qkv: FloatTensor<Self>,
                dt: FloatTensor<Self>,
                beta: FloatTensor<Self>,
                net: Arc<DeltaNet>,
                states: StatePages,
                layout: Arc<RaggedLayout>,
            ) -> StatefulOutput<Self> {
                let mut states = states;
                let out = delta_net::host::delta_net(qkv, dt, beta, &net, &mut states, &layout);
                StatefulOutput { out, states }
            }
        }
    };
}

host_ops!(Flex);
#[cfg(feature = "ndarray")]
host_ops!(burn_ndarray::NdArray);

// wgpu uses the default bodies: tensors in device memory, updated in place.
#[cfg(feature = "wgpu")]
impl LmOps for burn_wgpu::CubeBackend {}
