use burn::tensor::Tensor;
use lm_kernels::Weight;

use super::ForwardContext;
use crate::checkpoint::{LayerParam, Param, Piece};
use crate::error::Result;
use crate::loader::WeightLoader;
use crate::spec::Bias;

/// `x · Wᵀ`, plus a bias where the architecture has one.
pub(crate) struct Linear {
    weight: Weight,
    bias: Option<Tensor<1>>,
    /// Parameter of the weight, which identifies the projection for adapters.
    param: Param,
}

impl Linear {
    /// Loads a layer's projection from `inputs` to `outputs`.
    pub(crate) fn load(
        loader: &mut WeightLoader<'_>,
        layer: usize,
        param: fn(Piece) -> LayerParam,
        [inputs, outputs]: [usize; 2],
        bias: Bias,
    ) -> Result<Self> {
        let weight_param = Param::Layer(layer, param(Piece::Weight));
        let weight = loader.matrix(weight_param, outputs, inputs)?;
        let bias = match bias {
            Bias::Absent => None,
            Bias::Present => Some(loader.vector(Param::Layer(layer, param(Piece::Bias)), outputs)?),
        };
        loader.allow_adapters(weight_param, [outputs, inputs]);
        Ok(Self { weight, bias, param: weight_param })
    }

    /// Returns `residual`, `[rows, outputs]`, plus the projection of `x`, `[rows, inputs]`.
    pub(crate) fn add_to(&self, residual: Tensor<2>, x: Tensor<2>, context: &ForwardContext) -> Tensor<2> {
        let y = lm_kernels::linear_add(x.clone(), &self.weight, self.bias.clone(), residual);
        self.add_low_rank(y, &x, context)
    }

    /// `[rows, inputs]` to `[rows, outputs]`.
    pub(crate) fn forward(&self, x: Tensor<2>, context: &ForwardContext) -> Tensor<2> {
        let y = match &self.bias {
            None => lm_kernels::linear(x.clone(), &self.weight),
            Some(bias) => lm_kernels::linear_bias(x.clone(), &self.weight, bias.clone(), None),
        };
        self.add_low_rank(y, &x, context)
    }

    pub(crate) fn weight(&self) -> &Weight {
        &self.weight
    }

    /// Returns true if this pass needs only the product with the weight: no bias, no adapter.
    pub(crate) fn is_bare(&self, context: &ForwardContext) -> bool {
        self.bias.is_none() && !self.is_adapted(context)
    }

    /// Returns true if an adapter of some rows of this pass has an update of this projection.
    pub(crate) fn is_adapted(&self, context: &ForwardContext) -> bool {
        context.adapted.iter().any(|(_, adapter)| adapter.low_rank(self.param).is_some())
    }

    /// Adds the bias, if any, to a product with the weight.
    pub(crate) fn add_bias(&self, y: Tensor<2>) -> Tensor<2> {
        match &self.bias {
            None => y,
            Some(bias) => y + bias.clone().unsqueeze(),
        }
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
