//! The gated short convolution of LFM2.

use std::sync::Arc;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Dispatch, TensorMetadata, backend_extension};
use burn::tensor::Tensor;

use super::backend::{Bridge, on_every_backend};
use super::states::{StatefulOutput, convolve, for_each_run, with_states};
use super::{KvPool, Op};
use crate::host;
use crate::host::{CausalConv, Pool, RaggedLayout, StatePages};

pub(super) const OP: Op =
    Op { name: "short_conv", summary: "c · conv(b · x) over each sequence, continuing from its state" };

/// Gated short convolution over each sequence: with rows `b, c, x`, `c · conv(b · x)`.
///
/// A sequence continues from the state in the page of its last cached token (from zeros if nothing is cached)
/// and stores its new state as [`Retention::State`](crate::Retention::State) describes.
///
/// # Shapes
/// - `x`: `[rows, 3 * channels]`; returns `[rows, channels]`
///
/// # Panics
/// When shapes, layout and pool do not fit each other; the pool is then unchanged. When the device fails.
///
/// # Source
/// `Lfm2ShortConv` of transformers 5.23, `models/lfm2/modular_lfm2.py`.
pub fn short_conv(
    x: Tensor<2>,
    conv: &Arc<CausalConv>,
    pool: &mut KvPool,
    layer: usize,
    layout: &Arc<RaggedLayout>,
) -> Tensor<2> {
    let [rows, width] = x.dims();
    assert_eq!(width, 3 * conv.channels(), "short_conv: two gates and an input for each channel");
    let out = with_states(pool, layer, layout, [rows, conv.state_len()], |states| {
        Dispatch::short_conv(x.into_dispatch(), conv.clone(), states, layout.clone())
    });
    Tensor::from_dispatch(out)
}

/// Backend operation of [`short_conv`]. The states of the layer are moved in and returned.
#[backend_extension(Flex, NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "wgpu"))]
pub trait ShortConvOp: Bridge {
    fn short_conv(
        x: FloatTensor<Self>,
        conv: Arc<CausalConv>,
        states: StatePages,
        layout: Arc<RaggedLayout>,
    ) -> StatefulOutput<Self> {
        let mut states = states;
        let Some(tensors) = Self::HOST else {
            let out = portable(Self::lift(x), &conv, &mut states, &layout);
            return StatefulOutput { out: Self::lower(out), states };
        };
        let rows = x.shape()[0];
        let mut y = vec![0.0; rows * conv.channels()];
        host::short_conv(Pool::global(), &tensors.values(&x), &conv, &mut states, &layout, &mut y);
        StatefulOutput { out: tensors.create(y, [rows, conv.channels()]), states }
    }
}

on_every_backend!(ShortConvOp);

pub(super) fn portable(
    x: Tensor<2>,
    conv: &CausalConv,
    states: &mut StatePages,
    layout: &RaggedLayout,
) -> Tensor<2> {
    let channels = conv.channels();
    let part = |index: usize| x.clone().narrow(1, index * channels, channels); // [rows, channels]
    let inputs = part(0) * part(2);
    let convolved = for_each_run(states, layout, |rows, state| {
        convolve(conv, inputs.clone().narrow(0, rows.start, rows.len()), state)
    });
    if convolved.is_empty() { inputs } else { part(1) * Tensor::cat(convolved, 0) }
}
