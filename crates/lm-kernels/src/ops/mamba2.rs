//! The state space layer of Mamba-2.

use std::sync::Arc;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Dispatch, TensorMetadata, backend_extension};
use burn::tensor::Tensor;
use burn::tensor::activation::silu;

use super::backend::{Bridge, on_every_backend};
use super::states::{
    StatefulOutput, convolve, for_each_run, softplus, state_tensor, store_state, with_states,
};
use super::{KvPool, Op, from_host};
use crate::host;
use crate::host::{Mamba2, Mamba2Spec, Pool, RaggedLayout, StatePages};

pub(super) const OP: Op = Op {
    name: "mamba2",
    summary: "convolves inputs, B and C, then decays, adds to and reads a matrix a head",
};

/// Convolves the heads' inputs, `B` and `C` over each sequence, applies SiLU, and runs each head's recurrence
/// token by token; [`host::mamba2`](crate::host::mamba2) has the formulas. The gates in the rows are not
/// applied.
///
/// A sequence continues from the state in the page of its last cached token (from zeros if nothing is cached)
/// and stores its new state as [`Retention::State`](crate::Retention::State) describes.
///
/// # Shapes
/// - `projected`: `[rows, width]` of [`Mamba2Spec::projected_width`]: gates, inputs, `B`, `C` and time steps
/// - returns `[rows, num_heads * head_dim]`
///
/// # Panics
/// When shapes, layout and pool do not fit each other; the pool is then unchanged. When the device fails.
///
/// # Source
/// Transformers are SSMs, arXiv 2405.21060; `GraniteMoeHybridMambaLayer` of transformers 5.23.
pub fn mamba2(
    projected: Tensor<2>,
    net: &Arc<Mamba2>,
    pool: &mut KvPool,
    layer: usize,
    layout: &Arc<RaggedLayout>,
) -> Tensor<2> {
    let [rows, width] = projected.dims();
    assert_eq!(width, net.spec().projected_width(), "mamba2: gates, inputs, B, C and time steps");
    let out = with_states(pool, layer, layout, [rows, net.state_len()], |states| {
        Dispatch::mamba2(projected.into_dispatch(), net.clone(), states, layout.clone())
    });
    Tensor::from_dispatch(out)
}

/// Backend operation of [`mamba2`]. The states of the layer are moved in and returned.
#[backend_extension(Flex, NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "wgpu"))]
pub trait Mamba2Op: Bridge {
    fn mamba2(
        projected: FloatTensor<Self>,
        net: Arc<Mamba2>,
        states: StatePages,
        layout: Arc<RaggedLayout>,
    ) -> StatefulOutput<Self> {
        let mut states = states;
        let Some(tensors) = Self::HOST else {
            let out = portable(Self::lift(projected), &net, &mut states, &layout);
            return StatefulOutput { out: Self::lower(out), states };
        };
        let (rows, width) = (projected.shape()[0], net.spec().inner_width());
        let mut y = vec![0.0; rows * width];
        let values = tensors.values(&projected);
        host::mamba2(Pool::global(), &values, &net, &mut states, &layout, &mut y);
        StatefulOutput { out: tensors.create(y, [rows, width]), states }
    }
}

on_every_backend!(Mamba2Op);

pub(super) fn portable(
    projected: Tensor<2>,
    net: &Mamba2,
    states: &mut StatePages,
    layout: &RaggedLayout,
) -> Tensor<2> {
    let (spec, [rows, _], device) = (net.spec(), projected.dims(), projected.device());
    let (inputs, heads) = (spec.convolved(), spec.num_heads);
    let by_head = |values: &[f32]| from_host(values.to_vec(), [1, heads], &device);
    let [shortest, longest] = spec.time_step_limit;
    let dt = projected.clone().narrow(1, inputs.end, heads) + by_head(net.dt_bias());
    let dt = softplus(dt).clamp(shortest, longest); // [rows, num_heads]
    let alpha = (-dt.clone() * by_head(net.decay_rates())).exp();
    let convolved = projected.narrow(1, inputs.start, inputs.len());
    let outputs = for_each_run(states, layout, |rows, state| {
        let of_run = |tensor: &Tensor<2>| tensor.clone().narrow(0, rows.start, rows.len());
        let (conv_state, matrices) = state.split_at_mut(net.conv().state_len());
        let mixed = silu(convolve(net.conv(), of_run(&convolved), conv_state)); // [rows, conv_width]
        recurrence(mixed, of_run(&dt), of_run(&alpha), net, matrices)
    });
    if outputs.is_empty() {
        Tensor::zeros([rows, spec.inner_width()], &device)
    } else {
        Tensor::cat(outputs, 0)
    }
}

/// Runs the recurrence of one run: `mixed [rows, conv_width]`, `dt` and `alpha [rows, num_heads]`; returns
/// `[rows, num_heads * head_dim]`.
fn recurrence(
    mixed: Tensor<2>,
    dt: Tensor<2>,
    alpha: Tensor<2>,
    net: &Mamba2,
    state: &mut [f32],
) -> Tensor<2> {
    let Mamba2Spec { num_heads, head_dim, num_groups, state_dim, .. } = *net.spec();
    let (rows, device, inner) = (mixed.dims()[0], mixed.device(), net.spec().inner_width());
    let shared = |start: usize| {
        let x = mixed.clone().narrow(1, start, num_groups * state_dim);
        let x = x.reshape([rows, num_groups, 1, state_dim]).repeat_dim(2, num_heads / num_groups);
        x.reshape([rows, num_heads, state_dim, 1])
    };
    let (b, c) = (shared(inner), shared(inner + num_groups * state_dim));
    let x = mixed.clone().narrow(1, 0, inner).reshape([rows, num_heads, 1, head_dim]);
    let skips: Tensor<3> = from_host(net.skips().to_vec(), [num_heads, 1, 1], &device);
    let mut matrices = state_tensor(state, [num_heads, state_dim, head_dim], &device);
    let mut out = Vec::new();
    for row in 0..rows {
        let of_row = |x: &Tensor<4>| x.clone().narrow(0, row, 1).squeeze_dim::<3>(0); // [num_heads, _, _]
        let by_head = |x: &Tensor<2>| x.clone().narrow(0, row, 1).reshape([num_heads, 1, 1]);
        let (b, c, x) = (of_row(&b), of_row(&c), of_row(&x));
        matrices = matrices * by_head(&alpha) + b * (x.clone() * by_head(&dt));
        let read = (matrices.clone() * c).sum_dim(1); // [num_heads, 1, head_dim]
        out.push((read + x * skips.clone()).reshape([1, inner]));
    }
    store_state(matrices, state);
    Tensor::cat(out, 0)
}
