use burn::tensor::Tensor;
use lm_kernels::Weight;

use super::{Pass, PerLayerInput, RmsNorm, Sublayer};
use crate::Result;
use crate::spec::{CorrectionScale, DecoderSpec, Streams};
use crate::weights::{LayerParam, Param, WeightLoader};

/// Lower bound of a stream's mean square when it is rescaled.
const LEAST_MEAN_SQUARE: f32 = 1e-5;

/// Entry to and exit from a decoder of several streams. Between the layers, a row is its streams concatenated:
/// `[rows, streams * hidden]`.
pub(crate) struct StreamEnds {
    into: Vec<Weight>,
    out_of: Vec<Weight>,
}

impl StreamEnds {
    pub(crate) fn load(loader: &mut WeightLoader<'_>, spec: &DecoderSpec, streams: Streams) -> Result<Self> {
        let hidden = spec.hidden_size;
        let mut matrices = |param: fn(usize) -> Param| -> Result<Vec<Weight>> {
            (0..streams.count - 1).map(|stream| loader.matrix(param(stream), hidden, hidden)).collect()
        };
        Ok(Self { into: matrices(Param::AltUpProjection)?, out_of: matrices(Param::AltUpUnembed)? })
    }

    /// Maps `[rows, hidden]` to `[rows, streams * hidden]`: the row itself, then projections of it, rescaled to the row's RMS.
    pub(crate) fn open(&self, x: Tensor<2>) -> Tensor<2> {
        let projected = self.into.iter().map(|weight| as_large_as(&x, lm_kernels::linear(x.clone(), weight)));
        Tensor::cat(std::iter::once(x.clone()).chain(projected).collect(), 1)
    }

    /// Maps `[rows, streams * hidden]` to `[rows, hidden]`: the mean of the first stream and projections of the others, rescaled
    /// to the first stream's RMS.
    pub(crate) fn close(&self, x: Tensor<2>) -> Tensor<2> {
        let count = self.out_of.len() + 1;
        let streams = x.chunk(count, 1); // [rows, hidden] each
        let first = streams[0].clone();
        let others = streams.into_iter().skip(1).zip(&self.out_of);
        let sum = others.fold(first.clone(), |sum, (stream, weight)| {
            sum + as_large_as(&first, lm_kernels::linear(stream, weight))
        });
        sum / count as f32
    }
}

/// Rescales `x` to the root mean square of `like`, row by row.
fn as_large_as(like: &Tensor<2>, x: Tensor<2>) -> Tensor<2> {
    let wanted = like.clone().square().mean_dim(1).sqrt(); // [rows, 1]
    let present = x.clone().square().mean_dim(1).clamp_min(LEAST_MEAN_SQUARE).sqrt();
    x * wanted / present
}

/// AltUp of one layer: predicts all streams, runs the layer on the active one and corrects the prediction by the result.
///
/// # Source
/// Alternating Updates, arXiv 2301.13310, with coefficients computed from the row as in Gemma 3n.
pub(crate) struct AltUp {
    router_norm: RmsNorm,
    router: Weight,
    prediction: Weight,
    correction: Weight,
    correction_scale: Option<Tensor<1>>,
    streams: Streams,
}

impl AltUp {
    pub(crate) fn load(
        loader: &mut WeightLoader<'_>,
        spec: &DecoderSpec,
        streams: Streams,
        layer: usize,
    ) -> Result<Self> {
        let (hidden, count) = (spec.hidden_size, streams.count);
        let of = |param| Param::Layer(layer, param);
        Ok(Self {
            router_norm: RmsNorm::load(loader, spec, of(LayerParam::AltUpRouterNorm), hidden)?,
            router: loader.float_matrix(of(LayerParam::AltUpRouter), count, hidden)?,
            prediction: loader.float_matrix(of(LayerParam::AltUpPrediction), count * count, count)?,
            correction: loader.float_matrix(of(LayerParam::AltUpCorrection), count, count)?,
            correction_scale: match streams.correction_scale {
                CorrectionScale::Unused => None,
                CorrectionScale::Used => Some(loader.vector(of(LayerParam::AltUpCorrectionScale), hidden)?),
            },
            streams,
        })
    }

    /// Predicts the streams after the layer, `[rows, streams * hidden]`, from those before it.
    pub(crate) fn predict(&self, x: Tensor<2>) -> Tensor<2> {
        let count = self.streams.count;
        let coefficients = lm_kernels::linear(self.choice(self.active(&x)), &self.prediction);
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

    /// Corrects the `predicted` streams, `[rows, streams * hidden]`, by the layer's output for the active one, `[rows, hidden]`;
    /// all but the first stream receive the per-layer input.
    pub(crate) fn correct(
        &self,
        predicted: Tensor<2>,
        activated: Tensor<2>,
        per_layer: Option<&PerLayerInput>,
        pass: &Pass,
    ) -> Tensor<2> {
        let [rows, width] = predicted.dims();
        let (count, hidden) = (self.streams.count, width / self.streams.count);
        let coefficients = lm_kernels::linear(self.choice(activated.clone()), &self.correction) + 1.0; // [rows, streams]
        let innovation = (activated - self.active(&predicted)).reshape([rows, 1, hidden]);
        let corrected =
            predicted.reshape([rows, count, hidden]) + innovation * coefficients.reshape([rows, count, 1]);
        let Some(per_layer) = per_layer else { return corrected.reshape([rows, width]) };
        let active = self.active(&corrected.clone().reshape([rows, width]));
        let active = match &self.correction_scale {
            None => active,
            Some(scale) => active * scale.clone().unsqueeze(),
        };
        let input = per_layer.forward(active, pass).reshape([rows, 1, hidden]);
        let others = corrected.clone().narrow(1, 1, count - 1) + input;
        Tensor::cat(vec![corrected.narrow(1, 0, 1), others], 1).reshape([rows, width])
    }

    /// Router output that determines a row's coefficients: `[rows, hidden]` to `[rows, streams]`, between -1 and 1.
    fn choice(&self, x: Tensor<2>) -> Tensor<2> {
        let [_, hidden] = x.dims();
        (lm_kernels::linear(self.router_norm.forward(x), &self.router) / hidden as f32).tanh()
    }
}

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
        streams: Streams,
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

    /// Adds the low-rank path of `x`, attention's input, to `y`, the residual sum after attention, and scales by 1/√2; both
    /// `[rows, hidden]`.
    pub(crate) fn add_to(&self, y: Tensor<2>, x: Tensor<2>, around: &Sublayer) -> Tensor<2> {
        let x = around.input(x).normed();
        let low_rank = lm_kernels::linear(lm_kernels::linear(x.clone(), &self.left), &self.right);
        (y + x + self.norm.forward(low_rank)) * std::f32::consts::FRAC_1_SQRT_2
    }
}
