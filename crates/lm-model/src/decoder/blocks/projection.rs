use burn::tensor::Tensor;
use lm_kernels::Activation;

use super::{ForwardContext, LayerLoader};
use crate::checkpoint::{LayerParam, Param, Piece};
use crate::error::Result;
use crate::nn::{Linear, activated};
use crate::spec::Bias;

/// Projection of a layer, which adapters may update.
pub(crate) struct Projection {
    pub(crate) linear: Linear,
    /// Parameter of the weight, which identifies the projection for adapters.
    param: Param,
}

impl Projection {
    /// Loads the projection from `inputs` to `outputs`.
    pub(crate) fn load(
        layer: &mut LayerLoader<'_, '_>,
        param: fn(Piece) -> LayerParam,
        [inputs, outputs]: [usize; 2],
        bias: Bias,
    ) -> Result<Self> {
        let weight = layer.matrix(param(Piece::Weight), outputs, inputs)?;
        let bias = layer.bias(bias, param, outputs)?;
        let param = layer.param(param(Piece::Weight));
        layer.loader.allow_adapters(param, [outputs, inputs]);
        Ok(Self { linear: Linear { weight, bias }, param })
    }

    /// Returns `residual`, `[rows, outputs]`, plus the projection of `x`, `[rows, inputs]`.
    pub(crate) fn add_to(&self, residual: Tensor<2>, x: Tensor<2>, context: &ForwardContext) -> Tensor<2> {
        let y = self.linear.add_to(residual, x.clone());
        self.add_low_rank(y, &x, context)
    }

    /// `[rows, inputs]` to `[rows, outputs]`.
    pub(crate) fn forward(&self, x: Tensor<2>, context: &ForwardContext) -> Tensor<2> {
        let y = self.linear.forward(x.clone());
        self.add_low_rank(y, &x, context)
    }

    /// The activation of [`Projection::forward`].
    pub(crate) fn activated(
        &self,
        x: Tensor<2>,
        activation: Activation,
        context: &ForwardContext,
    ) -> Tensor<2> {
        match self.is_adapted(context) {
            false => self.linear.activated(x, activation),
            true => activated(self.forward(x, context), activation),
        }
    }

    /// Returns true if this pass needs only the product with the weight: no bias, no adapter.
    pub(crate) fn is_bare(&self, context: &ForwardContext) -> bool {
        self.linear.bias.is_none() && !self.is_adapted(context)
    }

    /// Returns true if an adapter of some rows of this pass has an update of this projection.
    pub(crate) fn is_adapted(&self, context: &ForwardContext) -> bool {
        context.adapted.iter().any(|(_, adapter)| adapter.low_rank(self.param).is_some())
    }

    /// Adds the adapters' low-rank products to their rows of `y`. Rows without an adapter stay bit-identical.
    fn add_low_rank(&self, mut y: Tensor<2>, x: &Tensor<2>, context: &ForwardContext) -> Tensor<2> {
        for (rows, adapter) in &context.adapted {
            let Some(low_rank) = adapter.low_rank(self.param) else { continue };
            let rows = || rows.clone();
            let sum = y.clone().slice([rows()]) + low_rank.forward(x.clone().slice([rows()]));
            y = y.slice_assign([rows()], sum);
        }
        y
    }
}
