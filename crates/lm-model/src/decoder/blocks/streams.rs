//! Residual streams between the layers: a single one, or the several of AltUp with LAuReL.

use burn::tensor::Tensor;

use super::{AltUp, AltUpProjections, ForwardContext, Laurel, LayerLoader, PerLayerInput, ResidualBlock};
use crate::error::Result;
use crate::loader::WeightLoader;
use crate::spec::DecoderSpec;

/// Streams of a decoder. Between the layers, a row is its streams concatenated: `[rows, streams * hidden]`.
pub(crate) enum DecoderStreams {
    /// The row itself.
    Single,
    AltUp(Box<AltUpProjections>),
}

impl DecoderStreams {
    pub(crate) fn load(loader: &mut WeightLoader<'_>, spec: &DecoderSpec) -> Result<Self> {
        Ok(match spec.streams {
            None => Self::Single,
            Some(streams) => Self::AltUp(Box::new(AltUpProjections::load(loader, spec, streams)?)),
        })
    }

    /// Maps embeddings, `[rows, hidden]`, to the streams before the first layer.
    pub(crate) fn expand(&self, x: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Single => x,
            Self::AltUp(altup) => altup.project(x),
        }
    }

    /// Maps the streams after the last layer to `[rows, hidden]`.
    pub(crate) fn merge(&self, x: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Single => x,
            Self::AltUp(altup) => altup.unembed(x),
        }
    }
}

/// Streams of a layer, which runs on one of them.
pub(crate) enum LayerStreams {
    Single,
    AltUp(Box<(AltUp, Laurel)>),
}

/// Values that the streams need again after the layer's blocks.
pub(crate) struct Predicted {
    /// Predicted streams after the layer, `[rows, streams * hidden]`.
    streams: Tensor<2>,
    /// Input of the mixer, `[rows, hidden]`.
    active: Tensor<2>,
}

impl LayerStreams {
    pub(crate) fn load(layer: &mut LayerLoader<'_, '_>) -> Result<Self> {
        let Some(streams) = layer.spec.streams else { return Ok(Self::Single) };
        let altup = AltUp::load(layer, streams)?;
        let laurel = Laurel::load(layer, streams)?;
        Ok(Self::AltUp(Box::new((altup, laurel))))
    }

    /// Returns the mixer's input, `[rows, hidden]`; AltUp predicts the streams and runs the layer on the
    /// active one.
    pub(crate) fn enter(&self, x: Tensor<2>) -> (Tensor<2>, Option<Predicted>) {
        match self {
            Self::Single => (x, None),
            Self::AltUp(both) => {
                let streams = both.0.predict(x);
                let active = both.0.active(&streams);
                (active.clone(), Some(Predicted { streams, active }))
            }
        }
    }

    /// Returns the input of the feed-forward block from `x`, the residual sum after the mixer; LAuReL adds
    /// its low-rank path.
    pub(crate) fn after_mixer(
        &self,
        x: Tensor<2>,
        predicted: Option<&Predicted>,
        residual: &ResidualBlock,
    ) -> Tensor<2> {
        match (self, predicted) {
            (Self::AltUp(both), Some(predicted)) => both.1.add_to(x, predicted.active.clone(), residual),
            _ => x,
        }
    }

    /// Returns the streams after the layer from `x`, the residual sum after the feed-forward block, with the
    /// per-layer input; AltUp corrects its prediction by `x`.
    pub(crate) fn leave(
        &self,
        x: Tensor<2>,
        predicted: Option<Predicted>,
        per_layer: Option<&PerLayerInput>,
        context: &ForwardContext,
    ) -> Tensor<2> {
        match (self, predicted, per_layer) {
            (Self::AltUp(both), Some(predicted), _) => {
                both.0.correct(predicted.streams, x, per_layer, context)
            }
            (_, _, Some(input)) => x.clone() + input.forward(x, context),
            (_, _, None) => x,
        }
    }
}
