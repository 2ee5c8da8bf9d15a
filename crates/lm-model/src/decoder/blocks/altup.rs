use burn::tensor::Tensor;
use lm_kernels::Weight;

use super::{ForwardContext, LayerLoader, PerLayerInput};
use crate::checkpoint::{LayerParam, Param};
use crate::error::Result;
use crate::loader::WeightLoader;
use crate::nn::Norm;
use crate::spec::{AltUpSpec, CorrectionScale, DecoderSpec};

/// Lower bound of a stream's mean square when it is rescaled.
const MIN_MEAN_SQUARE: f32 = 1e-5;

/// Projections of the embedding to the streams, and of the streams to the last hidden state. Between the
/// layers, a row is its streams concatenated: `[rows, streams * hidden]`.
pub(crate) struct AltUpProjections {
    projections: Vec<Weight>,
    unembed_projections: Vec<Weight>,
}

impl AltUpProjections {
    pub(crate) fn load(
        loader: &mut WeightLoader<'_>,
        spec: &DecoderSpec,
        streams: AltUpSpec,
    ) -> Result<Self> {
        let hidden = spec.hidden_size;
        let mut matrices = |param: fn(usize) -> Param| -> Result<Vec<Weight>> {
            (0..streams.count - 1).map(|stream| loader.matrix(param(stream), hidden, hidden)).collect()
        };
        Ok(Self {
            projections: matrices(Param::AltUpProjection)?,
            unembed_projections: matrices(Param::AltUpUnembed)?,
        })
    }

    /// Maps `[rows, hidden]` to `[rows, streams * hidden]`: the row itself, then projections of it, rescaled
    /// to the row's RMS.
    pub(crate) fn project(&self, x: Tensor<2>) -> Tensor<2> {
        let projected =
            self.projections.iter().map(|weight| rescale_to_rms(&x, lm_kernels::linear(x.clone(), weight)));
        Tensor::cat(std::iter::once(x.clone()).chain(projected).collect(), 1)
    }

    /// Maps `[rows, streams * hidden]` to `[rows, hidden]`: the mean of the first stream and projections of
    /// the others, rescaled to the first stream's RMS.
    pub(crate) fn unembed(&self, x: Tensor<2>) -> Tensor<2> {
        let count = self.unembed_projections.len() + 1;
        let streams = x.chunk(count, 1); // [rows, hidden] each
        let first = streams[0].clone();
        let others = streams.into_iter().skip(1).zip(&self.unembed_projections);
        let sum = others.fold(first.clone(), |sum, (stream, weight)| {
            sum + rescale_to_rms(&first, lm_kernels::linear(stream, weight))
        });
        sum / count as f32
    }
}

/// Rescales `x` to the root mean square of `like`, row by row.
fn rescale_to_rms(like: &Tensor<2>, x: Tensor<2>) -> Tensor<2> {
    let target = like.clone().square().mean_dim(1).sqrt(); // [rows, 1]
    let rms = x.clone().square().mean_dim(1).clamp_min(MIN_MEAN_SQUARE).sqrt();
    x * target / rms
}

/// AltUp of one layer: predicts all streams, runs the layer on the active one and corrects the prediction by
/// the result.
///
/// # Source
/// Alternating Updates, arXiv 2301.13310, with coefficients computed from the row as in Gemma 3n.
pub(crate) struct AltUp {
    router_norm: Norm,
    router: Weight,
    prediction: Weight,
    correction: Weight,
    correction_scale: Option<Tensor<1>>,
    streams: AltUpSpec,
}

impl AltUp {
    pub(crate) fn load(layer: &mut LayerLoader<'_, '_>, streams: AltUpSpec) -> Result<Self> {
        let (hidden, count) = (layer.hidden(), streams.count);
        Ok(Self {
            router_norm: layer.norm(LayerParam::AltUpRouterNorm, hidden)?,
            router: layer.float_matrix(LayerParam::AltUpRouter, count, hidden)?,
            prediction: layer.float_matrix(LayerParam::AltUpPrediction, count * count, count)?,
            correction: layer.float_matrix(LayerParam::AltUpCorrection, count, count)?,
            correction_scale: match streams.correction_scale {
                CorrectionScale::Unused => None,
                CorrectionScale::Used => Some(layer.vector(LayerParam::AltUpCorrectionScale, hidden)?),
            },
            streams,
        })
    }

    /// Predicts the streams after the layer, `[rows, streams * hidden]`, from those before it.
    pub(crate) fn predict(&self, x: Tensor<2>) -> Tensor<2> {
        let count = self.streams.count;
        let coefficients = lm_kernels::linear(self.router_modalities(self.active(&x)), &self.prediction);
        let [rows, width] = x.dims();
        let x = x.reshape([rows, count, width / count]);
        let change = coefficients.reshape([rows, count, count]).matmul(x.clone()); // [rows, streams, hidden]
        (change + x).reshape([rows, width])
    }

    /// Returns the active stream, which the layer runs on: `[rows, hidden]`.
    pub(crate) fn active(&self, x: &Tensor<2>) -> Tensor<2> {
        let hidden = x.dims()[1] / self.streams.count;
        x.clone().narrow(1, self.streams.active * hidden, hidden)
    }

    /// Corrects the `predicted` streams, `[rows, streams * hidden]`, by the layer's output for the active
    /// one, `[rows, hidden]`; all but the first stream receive the per-layer input.
    pub(crate) fn correct(
        &self,
        predicted: Tensor<2>,
        activated: Tensor<2>,
        per_layer: Option<&PerLayerInput>,
        context: &ForwardContext,
    ) -> Tensor<2> {
        let [rows, width] = predicted.dims();
        let (count, hidden) = (self.streams.count, width / self.streams.count);
        let coefficients =
            lm_kernels::linear(self.router_modalities(activated.clone()), &self.correction) + 1.0; // [rows, streams]
        let innovation = (activated - self.active(&predicted)).reshape([rows, 1, hidden]);
        let corrected =
            predicted.reshape([rows, count, hidden]) + innovation * coefficients.reshape([rows, count, 1]);
        let Some(per_layer) = per_layer else { return corrected.reshape([rows, width]) };
        let active = self.active(&corrected.clone().reshape([rows, width]));
        let active = match &self.correction_scale {
            None => active,
            Some(scale) => active * scale.clone().unsqueeze(),
        };
        let input = per_layer.forward(active, context).reshape([rows, 1, hidden]);
        let others = corrected.clone().narrow(1, 1, count - 1) + input;
        Tensor::cat(vec![corrected.narrow(1, 0, 1), others], 1).reshape([rows, width])
    }

    /// Router output that determines a row's coefficients: `[rows, hidden]` to `[rows, streams]`, between -1
    /// and 1.
    fn router_modalities(&self, x: Tensor<2>) -> Tensor<2> {
        let [_, hidden] = x.dims();
        (lm_kernels::linear(self.router_norm.forward(x), &self.router) / hidden as f32).tanh()
    }
}
