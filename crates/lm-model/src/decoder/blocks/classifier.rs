use burn::tensor::Tensor;

use super::load_norm;
use crate::checkpoint::{Param, Piece};
use crate::error::{Error, Result};
use crate::loader::WeightLoader;
use crate::nn::{Linear, Norm, activated};
use crate::spec::{Bias, ClassifierActivation, ClassifierNorm, ClassifierSpec, DecoderSpec};

/// Head that maps pooled hidden states to the logits of labels.
pub(crate) struct Classifier {
    dense: Option<(Linear, ClassifierActivation, Option<Norm>)>,
    output: Linear,
}

impl Classifier {
    pub(crate) fn load(
        loader: &mut WeightLoader<'_>,
        spec: &DecoderSpec,
        classifier: &ClassifierSpec,
    ) -> Result<Self> {
        let hidden = spec.hidden_size;
        let mut linear = |param: fn(Piece) -> Param, rows: usize, bias: Bias| {
            let weight = loader.float_matrix(param(Piece::Weight), rows, hidden)?;
            let bias = bias.if_present(|| loader.vector(param(Piece::Bias), rows))?;
            Ok::<_, Error>(Linear { weight, bias })
        };
        let output = linear(Param::Classifier, classifier.labels, classifier.bias)?;
        let dense = match classifier.dense {
            None => None,
            Some(dense) => {
                let linear = linear(Param::ClassifierDense, hidden, dense.bias)?;
                let norm = match dense.norm {
                    ClassifierNorm::Absent => None,
                    ClassifierNorm::Present => Some(load_norm(loader, spec, Param::ClassifierNorm, hidden)?),
                };
                Some((linear, dense.activation, norm))
            }
        };
        Ok(Self { dense, output })
    }

    /// Maps `[texts, hidden]` to `[texts, labels]`.
    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let x = match &self.dense {
            None => x,
            Some((dense, activation, norm)) => {
                let x = dense.forward(x);
                let x = match activation {
                    ClassifierActivation::Tanh => x.tanh(),
                    ClassifierActivation::Of(activation) => activated(x, *activation),
                };
                match norm {
                    None => x,
                    Some(norm) => norm.forward(x),
                }
            }
        };
        self.output.forward(x)
    }
}
