//! Common code of operations with recurrent states: taking states from the pool, and the default convolution.

use std::ops::Range;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, ExtensionType};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};

use super::{KvPool, from_host, to_host};
use crate::host::{CausalConv, RaggedLayout, StatePages};

/// Channels and columns that are adjacent in a state.
const BLOCK: usize = 16;

/// Result of an operation over states: its output and the updated states.
#[derive(ExtensionType)]
pub struct StatefulOutput<B: Backend> {
    pub out: FloatTensor<B>,
    pub states: StatePages,
}

/// Takes a layer's states out of the pool for an operation and puts them back.
///
/// # Panics
/// When the layout, the rows or the size of a state do not fit the pool, which is then unchanged.
pub(super) fn with_states(
    pool: &mut KvPool,
    layer: usize,
    layout: &RaggedLayout,
    [rows, state_len]: [usize; 2],
    operation: impl FnOnce(StatePages) -> StatefulOutput<Dispatch>,
) -> FloatTensor<Dispatch> {
    assert_eq!(layout.rows(), rows, "the sequences must cover the rows of the batch");
    assert_eq!(pool.states(layer).state_len(), state_len, "states of layer {layer} against the operation");
    pool.states(layer).check(layout);
    let StatefulOutput { out, states } = operation(pool.take_states(layer));
    pool.put_back_states(layer, states);
    out
}

/// Calls `operation` with the rows of each run and its input state, which it updates in place; returns the
/// results in the order of the runs.
pub(super) fn for_each_run(
    states: &mut StatePages,
    layout: &RaggedLayout,
    mut operation: impl FnMut(Range<usize>, &mut [f32]) -> Tensor<2>,
) -> Vec<Tensor<2>> {
    let runs = layout.sequences.iter().flat_map(|sequence| sequence.state_runs());
    let run = |run: crate::host::StateRun| {
        states.copy_input_state(&run);
        operation(run.rows, states.get_mut(run.to))
    };
    runs.map(run).collect()
}

/// Convolves the rows of one run, `[rows, channels]`; `state` is the convolution's.
pub(super) fn convolve(conv: &CausalConv, x: Tensor<2>, state: &mut [f32]) -> Tensor<2> {
    let ([rows, channels], kernel, device) = (x.dims(), conv.kernel_size(), x.device());
    let history = state_tensor(state, [1, kernel - 1, channels], &device).reshape([kernel - 1, channels]);
    let inputs = Tensor::cat(vec![history, x], 0); // [kernel - 1 + rows, channels]
    let bias = from_host(conv.bias().to_vec(), [1, channels], &device);
    let sum = (0..kernel).fold(bias.expand([rows, channels]), |sum, index| {
        let weight = (0..channels).map(|channel| conv.weight(channel, index)).collect();
        sum + inputs.clone().narrow(0, index, rows) * from_host(weight, [1, channels], &device)
    });
    let history = inputs.narrow(0, rows, kernel - 1);
    store_state(history.reshape([1, kernel - 1, channels]), state);
    sum
}

/// Converts part of a state, `[groups, blocks of 16 columns, rows, 16]`, to a tensor
/// `[groups, rows, columns]`.
pub(super) fn state_tensor(state: &[f32], shape: [usize; 3], device: &Device) -> Tensor<3> {
    let [groups, rows, columns] = shape;
    let blocks = columns.div_ceil(BLOCK);
    let blocked = from_host(state.to_vec(), [groups, blocks, rows, BLOCK], device);
    blocked.swap_dims(1, 2).reshape([groups, rows, blocks * BLOCK]).narrow(2, 0, columns)
}

/// Inverse of [`state_tensor`].
pub(super) fn store_state(tensor: Tensor<3>, state: &mut [f32]) {
    let [groups, rows, columns] = tensor.dims();
    let blocks = columns.div_ceil(BLOCK);
    let filling = Tensor::zeros([groups, rows, blocks * BLOCK - columns], &tensor.device());
    let filled = if blocks * BLOCK > columns { Tensor::cat(vec![tensor, filling], 2) } else { tensor };
    let blocked: Tensor<4> = filled.reshape([groups, rows, blocks, BLOCK]).swap_dims(1, 2);
    state.copy_from_slice(&to_host(blocked).expect("a device that works gives its results"));
}

/// `ln(1 + e^x)`.
pub(super) fn softplus(x: Tensor<2>) -> Tensor<2> {
    relu(x.clone()) + (-x.abs()).exp().log1p()
}
