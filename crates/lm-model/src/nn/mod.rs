//! Layers that decoders and encoders share.

mod linear;
mod rms_norm;

pub(crate) use self::linear::Linear;
pub(crate) use self::rms_norm::RmsNorm;

use burn::tensor::Tensor;

/// Multiplies by a factor, if there is one.
pub(crate) fn scaled<const D: usize>(x: Tensor<D>, factor: Option<f32>) -> Tensor<D> {
    match factor {
        None => x,
        Some(factor) => x * factor,
    }
}
