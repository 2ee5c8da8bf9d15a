//! Layers that decoders and encoders share.

mod layer_norm;
mod linear;
mod norm;
mod parts_norm;
mod rms_norm;

pub(crate) use self::layer_norm::LayerNorm;
pub(crate) use self::linear::Linear;
pub(crate) use self::norm::Norm;
pub(crate) use self::parts_norm::PartsNorm;
pub(crate) use self::rms_norm::RmsNorm;

use burn::tensor::Tensor;
use lm_kernels::Activation;

/// Multiplies by a factor, if there is one.
pub(crate) fn scaled<const D: usize>(x: Tensor<D>, factor: Option<f32>) -> Tensor<D> {
    match factor {
        None => x,
        Some(factor) => x * factor,
    }
}

/// The activation of each number.
pub(crate) fn activated(x: Tensor<2>, activation: Activation) -> Tensor<2> {
    let ones = Tensor::ones(x.dims(), &x.device());
    lm_kernels::glu(x, ones, activation)
}
