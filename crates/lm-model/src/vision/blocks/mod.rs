//! Parts of vision towers, and the reading of their tensors.

mod clipped_linear;
mod encoder_layer;
mod layer_norm;
mod linear;
mod mlp;
mod patch_attention;
mod rms_norm;
mod tensors;

pub(crate) use self::clipped_linear::ClippedLinear;
pub(crate) use self::encoder_layer::{EncoderLayer, EncoderSizes};
pub(crate) use self::layer_norm::LayerNorm;
pub(crate) use self::linear::{Bias, Linear};
pub(crate) use self::mlp::Mlp;
pub(crate) use self::patch_attention::PatchAttention;
pub(crate) use self::rms_norm::RmsNorm;
pub(crate) use self::tensors::TowerTensors;

use lm_kernels::{Device, Pool, PoolTurn};

/// Waits until no other model runs on the CPU. Towers take a turn for each layer, so that decode steps of other sequences run between layers.
pub(crate) fn turn(device: Device) -> Option<PoolTurn<'static>> {
    (device == Device::Cpu).then(|| Pool::global().turn())
}
