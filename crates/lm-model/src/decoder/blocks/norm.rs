use crate::checkpoint::Param;
use crate::error::Result;
use crate::loader::WeightLoader;
use crate::nn::RmsNorm;
use crate::spec::{DecoderSpec, NormWeight};

/// Loads a norm of a decoder.
pub(crate) fn load_norm(
    loader: &mut WeightLoader<'_>,
    spec: &DecoderSpec,
    param: Param,
    len: usize,
) -> Result<RmsNorm> {
    let norm = RmsNorm { weight: loader.vector(param, len)?, eps: spec.norm_eps };
    Ok(match spec.norm_weight {
        NormWeight::AsStored => norm,
        NormWeight::OnePlus => norm.plus_one(),
    })
}
