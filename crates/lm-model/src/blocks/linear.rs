use burn::tensor::Tensor;
use lm_kernels::Weight;

use crate::Result;
use crate::spec::Bias;
use crate::weights::{LayerParam, Param, Piece, WeightLoader};

/// `x · Wᵀ`, plus a bias where the architecture has one.
pub(crate) struct Linear {
    weight: Weight,
    bias: Option<Tensor<1>>,
}

impl Linear {
    /// One of a layer's projections from `inputs` to `outputs`.
    pub(crate) fn load(
        loader: &mut WeightLoader<'_>,
        layer: usize,
        param: fn(Piece) -> LayerParam,
        [inputs, outputs]: [usize; 2],
        bias: Bias,
    ) -> Result<Self> {
        let weight = loader.matrix(Param::Layer(layer, param(Piece::Weight)), outputs, inputs)?;
        let bias = match bias {
            Bias::Absent => None,
            Bias::Present => Some(loader.vector(Param::Layer(layer, param(Piece::Bias)), outputs)?),
        };
        Ok(Self { weight, bias })
    }

    /// `residual`, `[rows, outputs]`, plus what `[rows, inputs]` becomes.
    pub(crate) fn add_to(&self, residual: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
        self.add_bias(lm_kernels::linear_add(x, &self.weight, residual))
    }

    pub(crate) fn weight(&self) -> &Weight {
        &self.weight
    }

    pub(crate) fn has_bias(&self) -> bool {
        self.bias.is_some()
    }

    /// Adds the bias, if there is one, to products with the weight.
    pub(crate) fn add_bias(&self, y: Tensor<2>) -> Tensor<2> {
        match &self.bias {
            None => y,
            Some(bias) => y + bias.clone().unsqueeze(),
        }
    }

    /// `[rows, inputs]` to `[rows, outputs]`.
    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.add_bias(lm_kernels::linear(x, &self.weight))
    }
}
