use burn::tensor::Tensor;
use lm_kernels::Weight;

use super::{LayerLoader, ResidualBlock};
use crate::checkpoint::LayerParam;
use crate::error::Result;
use crate::nn::Norm;
use crate::spec::AltUpSpec;

/// LAuReL: a low-rank path parallel to attention, from its input to its output.
///
/// # Source
/// LAuReL, arXiv 2411.07501.
pub(crate) struct Laurel {
    left: Weight,
    right: Weight,
    norm: Norm,
}

impl Laurel {
    pub(crate) fn load(layer: &mut LayerLoader<'_, '_>, streams: AltUpSpec) -> Result<Self> {
        let (hidden, rank) = (layer.hidden(), streams.laurel_rank);
        Ok(Self {
            left: layer.matrix(LayerParam::LaurelLeft, rank, hidden)?,
            right: layer.matrix(LayerParam::LaurelRight, hidden, rank)?,
            norm: layer.norm(LayerParam::LaurelNorm, hidden)?,
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
