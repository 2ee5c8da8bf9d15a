//! Layers that decoders and encoders share.

mod linear;
mod rms_norm;

pub(crate) use self::linear::Linear;
pub(crate) use self::rms_norm::RmsNorm;
