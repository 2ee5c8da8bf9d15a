use burn::tensor::{Device as BurnDevice, Tensor};

use crate::checkpoint::Param;
use crate::error::Result;
use crate::loader::WeightLoader;
use crate::spec::{DecoderSpec, NormWeight};

/// RMS norm with a weight.
///
/// # Source
/// Root Mean Square Layer Normalization, arXiv 1910.07467.
pub(crate) struct RmsNorm {
    weight: Tensor<1>,
    eps: f32,
}

impl RmsNorm {
    pub(crate) fn load(
        loader: &mut WeightLoader<'_>,
        spec: &DecoderSpec,
        param: Param,
        len: usize,
    ) -> Result<Self> {
        let mut norm = Self::load_as_stored(loader, spec, param, len)?;
        if spec.norm_weight == NormWeight::OnePlus {
            norm.weight = norm.weight + 1.0;
        }
        Ok(norm)
    }

    /// Loads a norm whose stored weight is the factor itself, independent of the decoder's other norms.
    pub(crate) fn load_as_stored(
        loader: &mut WeightLoader<'_>,
        spec: &DecoderSpec,
        param: Param,
        len: usize,
    ) -> Result<Self> {
        Ok(Self { weight: loader.vector(param, len)?, eps: spec.norm_eps })
    }

    /// Norm without a weight.
    pub(crate) fn unweighted(device: &BurnDevice, spec: &DecoderSpec, len: usize) -> Self {
        Self { weight: Tensor::ones([len], device), eps: spec.norm_eps }
    }

    /// Returns the norm with its output multiplied by `factor`.
    pub(crate) fn times(self, factor: f32) -> Self {
        Self { weight: self.weight * factor, ..self }
    }

    pub(crate) fn weight(&self) -> Tensor<1> {
        self.weight.clone()
    }

    pub(crate) fn eps(&self) -> f32 {
        self.eps
    }

    /// Norms each row of `[rows, len]`.
    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        lm_kernels::rms_norm(x, self.weight.clone(), self.eps)
    }

    /// Norms parts of each row, each as long as the weight: heads or the whole row of
    /// `[rows, heads, head_dim]`.
    pub(crate) fn forward_parts(&self, x: Tensor<3>) -> Tensor<3> {
        let (shape, [len]) = (x.dims(), self.weight.dims());
        let parts = shape.iter().product::<usize>() / len;
        self.forward(x.reshape([parts, len])).reshape(shape)
    }

    /// Applies [`RmsNorm::forward_parts`] if there is a norm.
    pub(crate) fn apply(norm: Option<&Self>, x: Tensor<3>) -> Tensor<3> {
        match norm {
            None => x,
            Some(norm) => norm.forward_parts(x),
        }
    }
}
