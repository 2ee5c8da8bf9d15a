use burn::tensor::Tensor;
use lm_kernels::{Activation, Weight};
use lm_tokenizer::TokenId;

use super::{ForwardContext, LayerLoader, load_norm};
use crate::checkpoint::{LayerParam, Param};
use crate::error::Result;
use crate::loader::WeightLoader;
use crate::nn::Norm;
use crate::spec::{DecoderSpec, PerLayerInputs};

/// Per-layer embeddings: for each layer, a slice of a row of one wide table plus a slice of a projection of
/// the token embedding.
///
/// The table stays packed; only the rows of a batch's ids are looked up.
pub(crate) struct PerLayerEmbedding {
    table: Weight,
    projection: Weight,
    norm: Norm,
    spec: PerLayerInputs,
}

impl PerLayerEmbedding {
    pub(crate) fn load(
        loader: &mut WeightLoader<'_>,
        spec: &DecoderSpec,
        inputs: PerLayerInputs,
    ) -> Result<Self> {
        let width = spec.layers.len() * inputs.size;
        Ok(Self {
            table: loader.matrix(Param::PerLayerEmbedding, inputs.vocab_size, width)?,
            projection: loader.matrix(Param::PerLayerProjection, width, spec.hidden_size)?,
            norm: load_norm(loader, spec, Param::PerLayerProjectionNorm, inputs.size)?,
            spec: inputs,
        })
    }

    pub(crate) fn bytes_of_table(&self) -> u64 {
        self.table.bytes() as u64
    }

    /// Computes the inputs of all layers, concatenated by layer: `[rows, layers * size]`. `ids` are the rows'
    /// token ids, `None` for embedding rows; `x` are the rows, `[rows, hidden]`.
    pub(crate) fn inputs(&self, ids: &[Option<TokenId>], x: Tensor<2>) -> Tensor<2> {
        let PerLayerInputs { vocab_size, size, of_embeddings, .. } = self.spec;
        let known = |id: TokenId| if (id as usize) < vocab_size { id } else { 0 };
        let ids: Vec<_> = ids.iter().map(|id| known(id.unwrap_or(of_embeddings))).collect();
        let of_ids = lm_kernels::embedding(&self.table, &ids, &x.device()) * (size as f32).sqrt();
        let [_, hidden] = x.dims();
        let projected = lm_kernels::linear(x, &self.projection) / (hidden as f32).sqrt(); // [rows, layers * size]
        let [rows, width] = projected.dims();
        let normed = self.norm.forward(projected.reshape([rows * width / size, size])); // [rows * layers, size]
        (normed.reshape([rows, width]) + of_ids) * std::f32::consts::FRAC_1_SQRT_2
    }
}

/// Gate that mixes a layer's per-layer input into its rows: `norm(output(activation(gate(x)) · input))`.
pub(crate) struct PerLayerInput {
    gate: Weight,
    output: Weight,
    norm: Norm,
    activation: Activation,
    size: usize,
    layer: usize,
}

impl PerLayerInput {
    pub(crate) fn load(layer: &mut LayerLoader<'_, '_>, inputs: PerLayerInputs) -> Result<Self> {
        let (hidden, PerLayerInputs { size, activation, .. }) = (layer.hidden(), inputs);
        Ok(Self {
            gate: layer.matrix(LayerParam::PerLayerGate, size, hidden)?,
            output: layer.matrix(LayerParam::PerLayerOutput, hidden, size)?,
            norm: layer.norm(LayerParam::PerLayerNorm, hidden)?,
            activation,
            size,
            layer: layer.layer,
        })
    }

    /// Computes the addend for the rows `x`, `[rows, hidden]`, in the same shape.
    pub(crate) fn forward(&self, x: Tensor<2>, context: &ForwardContext) -> Tensor<2> {
        let inputs =
            context.per_layer_inputs.as_ref().expect("a decoder with such layers has made their inputs");
        let input = inputs.clone().narrow(1, self.layer * self.size, self.size); // [rows, size]
        let gated = lm_kernels::glu(lm_kernels::linear(x, &self.gate), input, self.activation); // [rows, size]
        self.norm.forward(lm_kernels::linear(gated, &self.output))
    }
}
