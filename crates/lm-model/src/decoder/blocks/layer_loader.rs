use burn::tensor::Tensor;
use lm_kernels::Weight;

use super::load_norm;
use crate::checkpoint::{LayerParam, Param, Piece};
use crate::error::Result;
use crate::loader::WeightLoader;
use crate::nn::{LayerNorm, Norm, PartsNorm, RmsNorm};
use crate::spec::{Bias, DecoderSpec, NormKind};

/// Loader of one layer's parameters.
pub(crate) struct LayerLoader<'a, 'b> {
    pub(crate) loader: &'a mut WeightLoader<'b>,
    pub(crate) spec: &'a DecoderSpec,
    /// Index of the layer.
    pub(crate) layer: usize,
}

impl LayerLoader<'_, '_> {
    /// Width of the decoder's rows.
    pub(crate) fn hidden(&self) -> usize {
        self.spec.hidden_size
    }

    /// Parameter of the layer.
    pub(crate) fn param(&self, param: LayerParam) -> Param {
        Param::Layer(self.layer, param)
    }

    /// Loads a matrix `[rows, cols]`.
    pub(crate) fn matrix(&mut self, param: LayerParam, rows: usize, cols: usize) -> Result<Weight> {
        self.loader.matrix(self.param(param), rows, cols)
    }

    /// Loads a matrix `[rows, cols]` that keeps floats in every format.
    pub(crate) fn float_matrix(&mut self, param: LayerParam, rows: usize, cols: usize) -> Result<Weight> {
        self.loader.float_matrix(self.param(param), rows, cols)
    }

    /// Loads a vector.
    pub(crate) fn vector(&mut self, param: LayerParam, len: usize) -> Result<Tensor<1>> {
        self.loader.vector(self.param(param), len)
    }

    /// Loads the elements of a vector to host memory.
    pub(crate) fn values(&mut self, param: LayerParam, len: usize) -> Result<Vec<f32>> {
        self.loader.values(self.param(param), len)
    }

    /// Loads a bias, if there is one.
    pub(crate) fn bias(
        &mut self,
        bias: Bias,
        param: fn(Piece) -> LayerParam,
        len: usize,
    ) -> Result<Option<Tensor<1>>> {
        bias.if_present(|| self.vector(param(Piece::Bias), len))
    }

    /// Loads a norm of the decoder's kind, whose weight is stored as the decoder's norms are.
    pub(crate) fn norm(&mut self, param: LayerParam, len: usize) -> Result<Norm> {
        load_norm(self.loader, self.spec, self.param(param), len)
    }

    /// Loads a norm of the decoder's kind over each of several parts of `len` elements, with a weight for
    /// each element of the row and no bias.
    pub(crate) fn norm_of_parts(&mut self, param: LayerParam, parts: usize, len: usize) -> Result<PartsNorm> {
        let weight = self.vector(param, parts * len)?;
        let of_part: Norm = match self.spec.norm_kind {
            NormKind::Rms => self.unweighted_norm(len).into(),
            NormKind::Layer(_) => {
                LayerNorm::unweighted(self.loader.burn_device(), len, self.spec.norm_eps).into()
            }
        };
        Ok(PartsNorm::new(of_part, weight, parts))
    }

    /// Loads an RMS norm whose stored weight is the factor itself, independent of the decoder's other norms.
    pub(crate) fn norm_as_stored(&mut self, param: LayerParam, len: usize) -> Result<RmsNorm> {
        Ok(RmsNorm { weight: self.vector(param, len)?, eps: self.spec.norm_eps })
    }

    /// RMS norm without a weight.
    pub(crate) fn unweighted_norm(&self, len: usize) -> RmsNorm {
        RmsNorm::unweighted(self.loader.burn_device(), len, self.spec.norm_eps)
    }
}
