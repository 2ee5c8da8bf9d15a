//! The gated delta rule (Gated DeltaNet) of Qwen3.5's linear attention.

use std::sync::Arc;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Dispatch, TensorMetadata, backend_extension};
use burn::tensor::activation::{sigmoid, silu};
use burn::tensor::{Device, Tensor};

use super::backend::{Bridge, on_every_backend};
use super::states::{
    StatefulOutput, convolve, for_each_run, softplus, state_tensor, store_state, with_states,
};
use super::{KvPool, Op, from_host};
use crate::host;
use crate::host::DeltaNetRows;
use crate::host::{DeltaNet, DeltaNetSpec, HeadOrder, Pool, RaggedLayout, StatePages};

pub(super) const OP: Op = Op {
    name: "delta_net",
    summary: "convolves queries, keys and values, then reads and corrects a matrix a head",
};

/// Convolves queries, keys and values over each sequence, applies SiLU, L2-normalises queries and keys, and
/// runs each value head's recurrence token by token; [`host::delta_net`](crate::host::delta_net) has the
/// formulas.
///
/// A sequence continues from the state in the page of its last cached token (from zeros if nothing is cached)
/// and stores its new state as [`Retention::State`](crate::Retention::State) describes.
///
/// # Shapes
/// - `qkv`: `[rows, width]` of [`DeltaNetSpec::width`], queries, keys and values in this order
/// - `dt`, `beta`: `[rows, num_value_heads]`, `a` and `b` of the reference
/// - returns `[rows, num_value_heads, value_dim]`
///
/// # Panics
/// When shapes, layout and pool do not fit each other; the pool is then unchanged. When the device fails.
///
/// # Source
/// Gated Delta Networks, arXiv 2412.06464; `Qwen3_5GatedDeltaNet` of transformers 5.23.
pub fn delta_net(
    qkv: Tensor<2>,
    dt: Tensor<2>,
    beta: Tensor<2>,
    net: &Arc<DeltaNet>,
    pool: &mut KvPool,
    layer: usize,
    layout: &Arc<RaggedLayout>,
) -> Tensor<3> {
    let ([rows, width], spec) = (qkv.dims(), net.spec());
    assert_eq!(width, spec.width(), "delta_net: queries, keys and values");
    assert_eq!(dt.dims(), [rows, spec.num_value_heads], "delta_net: times");
    assert_eq!(beta.dims(), [rows, spec.num_value_heads], "delta_net: strengths");
    let (qkv, dt, beta) = (qkv.into_dispatch(), dt.into_dispatch(), beta.into_dispatch());
    let out = with_states(pool, layer, layout, [rows, net.state_len()], |states| {
        Dispatch::delta_net(qkv, dt, beta, net.clone(), states, layout.clone())
    });
    Tensor::from_dispatch(out)
}

/// Backend operation of [`delta_net`]. The states of the layer are moved in and returned.
#[backend_extension(Flex, NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "wgpu"))]
pub trait DeltaNetOp: Bridge {
    fn delta_net(
        qkv: FloatTensor<Self>,
        dt: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        net: Arc<DeltaNet>,
        states: StatePages,
        layout: Arc<RaggedLayout>,
    ) -> StatefulOutput<Self> {
        let mut states = states;
        let Some(tensors) = Self::HOST else {
            let (dt, beta) = (Self::lift(dt), Self::lift(beta));
            let out = portable(Self::lift(qkv), dt, beta, &net, &mut states, &layout);
            return StatefulOutput { out: Self::lower(out), states };
        };
        let (rows, spec) = (qkv.shape()[0], net.spec());
        let mut y = vec![0.0; rows * spec.num_value_heads * spec.value_dim];
        let (qkv, dt, beta) = (tensors.values(&qkv), tensors.values(&dt), tensors.values(&beta));
        let inputs = DeltaNetRows { qkv: &qkv, dt: &dt, beta: &beta };
        host::delta_net(Pool::global(), inputs, &net, &mut states, &layout, &mut y);
        let out = tensors.create(y, [rows, spec.num_value_heads, spec.value_dim]);
        StatefulOutput { out, states }
    }
}

on_every_backend!(DeltaNetOp);

pub(super) fn portable(
    qkv: Tensor<2>,
    dt: Tensor<2>,
    beta: Tensor<2>,
    net: &DeltaNet,
    states: &mut StatePages,
    layout: &RaggedLayout,
) -> Tensor<3> {
    let DeltaNetSpec { num_value_heads, value_dim, .. } = *net.spec();
    let shape = [qkv.dims()[0], num_value_heads, value_dim];
    let (alpha, beta) = (decay(dt, net), sigmoid(beta)); // [rows, num_value_heads]
    let outputs = for_each_run(states, layout, |rows, state| {
        let of_run = |tensor: &Tensor<2>| tensor.clone().narrow(0, rows.start, rows.len());
        let (conv_state, matrices) = state.split_at_mut(net.conv().state_len());
        let mixed = silu(convolve(net.conv(), of_run(&qkv), conv_state)); // [rows, width]
        recurrence(mixed, of_run(&alpha), of_run(&beta), net.spec(), matrices)
    });
    if outputs.is_empty() {
        Tensor::zeros(shape, &qkv.device())
    } else {
        Tensor::cat(outputs, 0).reshape(shape)
    }
}

/// Decay of a head's state at each row: `alpha = exp(-rate · softplus(dt + bias))`.
fn decay(dt: Tensor<2>, net: &DeltaNet) -> Tensor<2> {
    let ([_, heads], device) = (dt.dims(), dt.device());
    let by_head = |values: &[f32]| from_host(values.to_vec(), [1, heads], &device);
    let dt = dt + by_head(net.dt_bias());
    (-softplus(dt) * by_head(net.decay_rates())).exp()
}

/// Runs the recurrence of one run: `mixed [rows, width]`, `alpha` and `beta [rows, num_value_heads]`; returns
/// `[rows, num_value_heads * value_dim]`.
fn recurrence(
    mixed: Tensor<2>,
    alpha: Tensor<2>,
    beta: Tensor<2>,
    spec: &DeltaNetSpec,
    state: &mut [f32],
) -> Tensor<2> {
    let DeltaNetSpec { num_key_heads, num_value_heads, key_dim, value_dim, order } = *spec;
    let (rows, device, keys): (_, Device, _) = (mixed.dims()[0], mixed.device(), num_key_heads * key_dim);
    let heads = |start: usize| {
        let (shape, repeated) = match order {
            HeadOrder::Grouped => ([rows, num_key_heads, 1, key_dim], 2),
            HeadOrder::Tiled => ([rows, 1, num_key_heads, key_dim], 1),
        };
        let x = normed(mixed.clone().narrow(1, start, keys).reshape(shape));
        let x = x.repeat_dim(repeated, num_value_heads / num_key_heads);
        x.reshape([rows, num_value_heads, key_dim, 1])
    };
    let (q, k) = (heads(0) / (key_dim as f32).sqrt(), heads(keys));
    let v = mixed.clone().narrow(1, 2 * keys, num_value_heads * value_dim);
    let v = v.reshape([rows, num_value_heads, 1, value_dim]);
    let mut matrices = state_tensor(state, [num_value_heads, key_dim, value_dim], &device);
    let mut out = Vec::new();
    for row in 0..rows {
        let of_row = |x: &Tensor<4>| x.clone().narrow(0, row, 1).squeeze_dim::<3>(0); // [num_value_heads, _, _]
        let gate = |x: &Tensor<2>| x.clone().narrow(0, row, 1).reshape([num_value_heads, 1, 1]);
        let (q, k, v) = (of_row(&q), of_row(&k), of_row(&v));
        matrices = matrices * gate(&alpha);
        let s_k = (matrices.clone() * k.clone()).sum_dim(1); // [num_value_heads, 1, value_dim]
        matrices = matrices + k * ((v - s_k) * gate(&beta));
        out.push((matrices.clone() * q).sum_dim(1).reshape([1, num_value_heads * value_dim]));
    }
    store_state(matrices, state);
    Tensor::cat(out, 0)
}

/// L2-normalises each head.
fn normed(x: Tensor<4>) -> Tensor<4> {
    let length = (x.clone().square().sum_dim(3) + 1e-6).sqrt();
    x / length
}
