use burn::tensor::Tensor;

use crate::checkpoint::Param;
use crate::error::Result;
use crate::loader::WeightLoader;
use crate::nn::{LayerNorm, Norm, RmsNorm};
use crate::spec::{DecoderSpec, NormKind, NormWeight};

/// Loads a norm of a decoder.
pub(crate) fn load_norm(
    loader: &mut WeightLoader<'_>,
    spec: &DecoderSpec,
    param: Param,
    len: usize,
) -> Result<Norm> {
    let (weight, eps) = (loader.vector(param, len)?, spec.norm_eps);
    let weight = match spec.norm_weight {
        NormWeight::AsStored => weight,
        NormWeight::OnePlus => weight + 1.0,
    };
    Ok(match spec.norm_kind {
        NormKind::Rms => RmsNorm { weight, eps }.into(),
        NormKind::Layer(_) => {
            let bias = match spec.norm_bias(param) {
                Some(bias) => loader.vector(bias, len)?,
                None => Tensor::zeros([len], loader.burn_device()),
            };
            LayerNorm { weight, bias, eps }.into()
        }
    })
}
