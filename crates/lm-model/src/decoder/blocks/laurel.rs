use burn::tensor::Tensor;
use lm_kernels::Weight;

use super::{ResidualBlock, RmsNorm};
use crate::checkpoint::{LayerParam, Param};
use crate::error::Result;
use crate::loader::WeightLoader;
use crate::spec::{AltUpSpec, DecoderSpec};

/// LAuReL: a low-rank path parallel to attention, from its input to its output.
///
/// # Source
/// LAuReL, arXiv 2411.07501.
pub(crate) struct Laurel {
    left: Weight,
    right: Weight,
    norm: RmsNorm,
}

impl Laurel {
    pub(crate) fn load(
        loader: &mut WeightLoader<'_>,
        spec: &DecoderSpec,
        streams: AltUpSpec,
        layer: usize,
    ) -> Result<Self> {
        let (hidden, rank) = (spec.hidden_size, streams.laurel_rank);
        let of = |param| Param::Layer(layer, param);
        Ok(Self {
            left: loader.matrix(of(LayerParam::LaurelLeft), rank, hidden)?,
            right: loader.matrix(of(LayerParam::LaurelRight), hidden, rank)?,
            norm: RmsNorm::load(loader, spec, of(LayerParam::LaurelNorm), hidden)?,
        })
    }

    /// Adds the low-rank path of `x`, attention's input, to `y`, the residual sum after attention, and scales
    /// by 1/√2; both `[rows, hidden]`.
    pub(crate) fn add_to(&self, y: Tensor<2>, x: Tensor<2>, residual: &ResidualBlock) -> Tensor<2> {
        let x = residual.input(x).normed();
        let low_rank = lm_kernels::linear(lm_kernels::linear(x.clone(), &self.left), &self.right);
        (y + x + self.norm.forward(low_rank)) * std::f32::consts::FRAC_1_SQRT_2
    }
}
