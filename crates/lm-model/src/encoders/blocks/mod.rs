//! Parts of encoders, and loading of their tensors.

mod block_attention;
mod clipped_linear;
mod depthwise_conv;
mod encoder_layer;
mod linear;
mod mlp;
mod norm;
mod patch_attention;
mod strided_conv;
mod tensors;

pub(crate) use self::block_attention::BlockAttention;
pub(crate) use self::clipped_linear::ClippedLinear;
pub(crate) use self::depthwise_conv::DepthwiseConv;
pub(crate) use self::encoder_layer::{EncoderLayer, EncoderSizes};
pub(crate) use self::mlp::Mlp;
pub(crate) use self::patch_attention::PatchAttention;
pub(crate) use self::strided_conv::StridedConv;
pub(crate) use crate::loader::TensorReader;
pub(crate) use crate::nn::{LayerNorm, Linear, Norm, RmsNorm, activated};
pub(crate) use crate::spec::Bias;

use burn::tensor::Tensor;
use lm_kernels::{Device, Pool, PoolTurn};

/// Waits until no other model runs on the CPU. Encoders take a turn for each layer, which decode steps of
/// other sequences interrupt.
pub(crate) fn turn(device: Device) -> Option<PoolTurn<'static>> {
    (device == Device::Cpu).then(|| Pool::global().background_turn())
}

/// Runs a part of an encoder in a [`turn`].
pub(crate) fn in_turn<T>(device: Device, run: impl FnOnce() -> T) -> T {
    let _turn = turn(device);
    run()
}

/// Number of rows that are widened at a time, so that thousands of wide rows are never all in memory.
const TILE: usize = 1024;

/// Applies a function of single rows to some rows at a time.
pub(crate) fn in_tiles(x: Tensor<2>, of_tile: impl Fn(Tensor<2>) -> Tensor<2>) -> Tensor<2> {
    let [rows, _] = x.dims();
    if rows <= TILE {
        return of_tile(x);
    }
    let tile = |first| of_tile(x.clone().narrow(0, first, TILE.min(rows - first)));
    Tensor::cat((0..rows).step_by(TILE).map(tile).collect(), 0)
}

/// The rows with as many rows of zeros before and after them.
pub(crate) fn with_zeros<const D: usize>(x: Tensor<D>, [before, after]: [usize; 2]) -> Tensor<D> {
    let zeros = |rows: usize| {
        let mut shape = x.dims();
        shape[0] = rows;
        (rows > 0).then(|| Tensor::zeros(shape, &x.device()))
    };
    let (before, after) = (zeros(before), zeros(after));
    match (&before, &after) {
        (None, None) => x,
        _ => Tensor::cat(before.into_iter().chain([x]).chain(after).collect(), 0),
    }
}
