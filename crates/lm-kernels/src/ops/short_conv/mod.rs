//! The gated short convolution of LFM2.

pub(super) mod host;

use std::sync::Arc;

use burn::backend::Dispatch;
use burn::tensor::Tensor;

use super::backend::LmOps;
use super::states::{convolve, for_each_run, with_states};
use super::{KvPool, Op};
use crate::{CausalConv, RaggedLayout, StatePages};

pub(super) const OP: Op =
    Op { name: "short_conv", summary: "c · conv(b · x) over each sequence, going on from its state" };

/// Gated short convolution over each sequence: with rows `b, c, x`, `c · conv(b · x)`.
///
/// A sequence continues from the state in the page of its last cached token (from zeros if nothing is cached) and
/// stores its new state as [`Retention::State`](crate::Retention::State) describes.
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
