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

    /// `[rows, inputs]` to `[rows, outputs]`.
    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let y = lm_kernels::linear(x, &self.weight);
        match &self.bias {
            None => y,
            Some(bias) => y + bias.clone().unsqueeze(),
        }
    }
}
