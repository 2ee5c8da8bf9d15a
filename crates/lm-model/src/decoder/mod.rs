//! Decoder that runs the spec of any architecture of [`crate::architectures`].

mod blocks;
pub(crate) mod layout;
pub(crate) mod validate;

use burn::tensor::{Int, Tensor};
use lm_kernels::host::profile::{self, Work};
use lm_kernels::{CacheLayout, Device, KvDtype, KvPool, Pool, PoolTurn};
use lm_tokenizer::TokenId;

use self::blocks::{
    Attention, Classifier, DecoderStreams, DenseAndMoe, Embedding, EncoderInputs, ForwardContext,
    GatedDeltaNet, GatedMlp, LatentAttention, LayerLoader, LayerStreams, Mamba2Mixer, MoeMlp,
    PerLayerEmbedding, PerLayerInput, PlainMlp, ResidualBlock, Rope, ShortConv, load_norm,
};
use self::layout::{adapted_rows, ids_of_rows, layouts, logit_rows, media_rows};
use self::validate::{BatchLimits, check_batch, check_embeddings};
use crate::batch::{Batch, Embeddings, Input, Logits, MediaSlice, SequenceInput};
use crate::causal_lm::{CausalLm, ModelInfo};
use crate::checkpoint::{LayerParam, Param};
use crate::error::{BatchProblem, Error, Result};
use crate::loader::{AdapterLoader, WeightLoader};
use crate::nn::{Norm, scaled};
use crate::spec::{
    BidirectionalLayers, DENSE, DecoderSpec, LayerScalar, LayerSpec, Mixer, Mlp, ModelOutput, OutputNorm,
};

/// A decoder on one device.
pub(crate) struct Decoder {
    info: ModelInfo,
    embedding: Embedding,
    per_layer_embedding: Option<PerLayerEmbedding>,
    streams: DecoderStreams,
    encoder_inputs: Option<EncoderInputs>,
    layers: Vec<Layer>,
    norm: Option<Norm>,
    classifier: Option<Classifier>,
    ropes: Vec<Rope>,
    cache_layout: CacheLayout,
    bidirectional: BidirectionalLayers,
    kv_dtype: KvDtype,
    bytes_per_page: usize,
    adapter_loader: AdapterLoader,
}

/// Decoder layer: each block with its residual wrapper.
struct Layer {
    mixer_residual: ResidualBlock,
    mixer: MixerBlock,
    mlp_residual: ResidualBlock,
    mlp: MlpBlock,
    /// True if the feed-forward block reads what the mixer reads.
    is_parallel: bool,
    per_layer_input: Option<PerLayerInput>,
    streams: LayerStreams,
    /// Factor on the layer's output.
    scalar: Option<f32>,
}

enum MixerBlock {
    Attention(Box<Attention>),
    LatentAttention(Box<LatentAttention>),
    ShortConv(Box<ShortConv>),
    DeltaNet(Box<GatedDeltaNet>),
    Mamba2(Box<Mamba2Mixer>),
    Absent,
}

enum MlpBlock {
    Gated(Box<GatedMlp>),
    Plain(Box<PlainMlp>),
    Experts(Box<MoeMlp>),
    DenseAndMoe(Box<DenseAndMoe>),
    Absent,
}

impl Decoder {
    /// Loads the weights of `spec`; `loader` has checked that they are present.
    pub(crate) fn load(
        architecture: String,
        spec: DecoderSpec,
        device: Device,
        kv_dtype: KvDtype,
        checksum: u64,
        mut loader: WeightLoader<'_>,
    ) -> Result<Self> {
        let embedding = Embedding::load(&mut loader, &spec)?;
        let per_layer_embedding =
            spec.per_layer_inputs.map(|inputs| PerLayerEmbedding::load(&mut loader, &spec, inputs));
        let per_layer_embedding = per_layer_embedding.transpose()?;
        let streams = DecoderStreams::load(&mut loader, &spec)?;
        let encoder_inputs =
            spec.encoder.as_ref().map(|encoder| EncoderInputs::load(&mut loader, &spec, encoder));
        let encoder_inputs = encoder_inputs.transpose()?;
        let outside = loader.parameters();
        let layers = spec.layers.iter().enumerate();
        let layers = layers
            .map(|(layer, of_layer)| {
                Layer::load(&mut LayerLoader { loader: &mut loader, spec: &spec, layer }, of_layer)
            })
            .collect::<Result<Vec<_>>>()?;
        let layer_parameters = loader.parameters() - outside;
        let norm = match spec.output_norm {
            OutputNorm::Absent => None,
            OutputNorm::Present => Some(load_norm(&mut loader, &spec, Param::OutputNorm, spec.hidden_size)?),
        };
        let classifier = spec.classifier.as_ref().map(|head| Classifier::load(&mut loader, &spec, head));
        let classifier = classifier.transpose()?;
        let cache_layout = spec.cache_layout();
        let table = per_layer_embedding.as_ref().map_or(0, PerLayerEmbedding::bytes_of_table);
        let info = ModelInfo {
            architecture: architecture.clone(),
            context_len: spec.context_len,
            hidden_size: spec.hidden_size,
            num_layers: spec.layers.len(),
            logits_width: spec.vocab_size,
            checksum,
            parameters: loader.parameters(),
            weight_bytes: loader.weight_bytes(),
            layer_parameters: layer_parameters - spec.inactive_parameters(),
            attention: spec.attention_shapes(),
            decode_bytes: loader.weight_bytes()
                - embedding.bytes_of_tables_alone()
                - table
                - layers.iter().map(Layer::inactive_bytes).sum::<u64>(),
            output: spec.output(),
            direction: spec.direction(),
            device,
            format: embedding.format(),
            formats: loader.formats(),
        };
        // A device may store keys and values in a wider type than requested: a pool of one page has the
        // actual type.
        let bytes_per_page = new_pool(device, &cache_layout, 1, kv_dtype)?.bytes_per_page();
        let bidirectional = spec.bidirectional;
        let ropes = spec.ropes.into_iter().map(Rope::new).collect();
        let adapter_loader = loader.adapter_loader(&architecture);
        Ok(Self {
            info,
            embedding,
            per_layer_embedding,
            streams,
            encoder_inputs,
            layers,
            norm,
            classifier,
            ropes,
            cache_layout,
            bidirectional,
            kv_dtype,
            bytes_per_page,
            adapter_loader,
        })
    }

    /// Counts weights in addition to the decoder's: a vision part's.
    pub(crate) fn count_weights(&mut self, bytes: u64) {
        self.info.weight_bytes += bytes;
    }

    /// Loader of adapters for this decoder.
    pub(crate) fn adapter_loader(&self) -> &AdapterLoader {
        &self.adapter_loader
    }

    /// The new rows of all sequences, concatenated: `[rows, hidden]`.
    fn input_rows(&self, batch: &Batch) -> Tensor<2> {
        let mut parts = Vec::new();
        let mut ids = Vec::new();
        for sequence in &batch.sequences {
            match &sequence.input {
                Input::Ids(new) => ids.extend_from_slice(new),
                Input::Embeddings(rows) => {
                    if !ids.is_empty() {
                        parts.push(self.embedding.lookup(&std::mem::take(&mut ids)));
                    }
                    parts.push(self.embedding.upload(rows.values.clone()));
                }
            }
        }
        if !ids.is_empty() {
            parts.push(self.embedding.lookup(&ids));
        }
        let mut x = Tensor::cat(parts, 0);
        for (rows, MediaSlice { media, range, .. }) in media_rows(batch) {
            let values = self.embedding.upload(media.rows.slice(range.clone()).to_vec());
            x = x.slice_assign([rows, 0..self.info.hidden_size], values);
        }
        x
    }

    /// # Errors
    /// [`Error::NoTokens`] for a model without an output head.
    fn check_tokens(&self) -> Result<()> {
        match self.info.output {
            ModelOutput::Tokens => Ok(()),
            _ => Err(Error::NoTokens { architecture: self.info.architecture.clone() }),
        }
    }

    /// Waits until no other model runs on the CPU, where the kernels' threads are shared.
    fn turn(&self) -> Option<PoolTurn<'static>> {
        (self.info.device == Device::Cpu).then(|| Pool::global().turn())
    }

    /// Runs all layers and returns the final hidden states of the requested rows, `[selected, hidden]`;
    /// `None` if there are none.
    fn run(&self, batch: &Batch, cache: &mut KvPool) -> Result<Option<Tensor<2>>> {
        if *cache.layout() != self.cache_layout {
            let [expected, got] = [&self.cache_layout, cache.layout()].map(|layout| layout.layers().len());
            return Err(Error::ForeignCache { expected, got });
        }
        let adapters = Some(self.adapter_loader.model_shape());
        check_batch(batch, &BatchLimits { adapters, ..BatchLimits::new(&self.info, cache) })?;
        if batch.sequences.is_empty() {
            return Ok(None);
        }
        let x = self.embedding.add_positions(self.input_rows(batch), batch); // [rows, hidden]
        let x = match &self.encoder_inputs {
            None => x,
            Some(inputs) => inputs.forward(x, batch),
        };
        let context = self.context(batch, &x);
        let mut x = self.streams.expand(x); // [rows, streams * hidden]
        for (index, layer) in self.layers.iter().enumerate() {
            x = layer.forward(x, &context, cache)?;
            x = add_deep_rows(x, batch, index);
        }
        let (selected, _) = logit_rows(batch);
        if selected.is_empty() {
            return Ok(None);
        }
        let index = Tensor::<1, Int>::from_data(selected.as_slice(), &x.device());
        let x = self.streams.merge(x.select(0, index));
        Ok(Some(match &self.norm {
            None => x,
            Some(norm) => norm.forward(x),
        }))
    }

    /// Computes the data that all layers share for the batch's rows `x`, `[rows, hidden]`.
    fn context(&self, batch: &Batch, x: &Tensor<2>) -> ForwardContext {
        let device = self.embedding.device();
        let per_layer = self.per_layer_embedding.as_ref();
        ForwardContext {
            layouts: layouts(batch, self.cache_layout.groups(), self.bidirectional),
            lengths: batch.sequences.iter().map(SequenceInput::rows).collect(),
            rotations: self.ropes.iter().map(|rope| rope.rotation(batch, device)).collect(),
            adapted: adapted_rows(batch),
            per_layer_inputs: per_layer.map(|table| table.inputs(&ids_of_rows(batch), x.clone())),
        }
    }
}

/// Creates a pool; one without a layer's pages has numbers of pages only.
fn new_pool(device: Device, layout: &CacheLayout, num_pages: usize, kv_dtype: KvDtype) -> Result<KvPool> {
    match layout.layers().is_empty() {
        true => Ok(KvPool::empty(num_pages)),
        false => Ok(KvPool::new(device, layout, num_pages, kv_dtype)?),
    }
}

/// Adds the images' rows for a layer to its output, `[rows, streams * hidden]`.
fn add_deep_rows(mut x: Tensor<2>, batch: &Batch, layer: usize) -> Tensor<2> {
    for (rows, MediaSlice { media, range, .. }) in media_rows(batch) {
        let Some(deep) = media.deep.get(layer) else { continue };
        let (shape, place) = ([rows.len(), deep.hidden_size], [rows, 0..deep.hidden_size]);
        let added = lm_kernels::from_host(deep.slice(range.clone()).to_vec(), shape, &x.device());
        x = x.clone().slice_assign(place.clone(), x.slice(place) + added);
    }
    x
}

impl CausalLm for Decoder {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn new_cache(&self, num_pages: usize) -> Result<KvPool> {
        new_pool(self.info.device, &self.cache_layout, num_pages, self.kv_dtype)
    }

    fn cache_bytes_per_page(&self) -> usize {
        self.bytes_per_page
    }

    fn shares_device(&self) -> bool {
        self.info.device == Device::Cpu && Pool::global().has_turns()
    }

    fn forward(&self, batch: &Batch, cache: &mut KvPool) -> Result<Logits> {
        let (_, counts) = logit_rows(batch);
        if counts.iter().any(|&count| count > 0) {
            self.check_tokens()?;
        }
        let _turn = self.turn();
        let _span = profile::span(Work::Between);
        let values = match self.run(batch, cache)? {
            Some(x) => lm_kernels::to_host(self.embedding.logits(x))?, // [selected, vocab]
            None => Vec::new(),
        };
        Ok(Logits::new(values, self.info.logits_width, counts))
    }

    fn hidden(&self, batch: &Batch, cache: &mut KvPool) -> Result<Embeddings> {
        let _turn = self.turn();
        let _span = profile::span(Work::Between);
        let values = self.run(batch, cache)?.map_or(Ok(Vec::new()), lm_kernels::to_host)?;
        Ok(Embeddings { values, hidden_size: self.info.hidden_size })
    }

    fn head(&self, rows: Embeddings) -> Result<Logits> {
        check_embeddings(&rows, self.info.hidden_size)
            .map_err(|problem| Error::Batch { sequence: 0, problem })?;
        let _turn = self.turn();
        let _span = profile::span(Work::Between);
        let count = rows.rows();
        if count > 0 {
            self.check_tokens()?;
        }
        let values = match count {
            0 => Vec::new(),
            _ => lm_kernels::to_host(self.embedding.logits(self.embedding.upload(rows.values)))?,
        };
        Ok(Logits::new(values, self.info.logits_width, [count]))
    }

    fn classify(&self, pooled: Embeddings) -> Result<Embeddings> {
        let (Some(classifier), ModelOutput::Labels { count, .. }) = (&self.classifier, self.info.output)
        else {
            return Err(Error::NoLabels { architecture: self.info.architecture.clone() });
        };
        check_embeddings(&pooled, self.info.hidden_size)
            .map_err(|problem| Error::Batch { sequence: 0, problem })?;
        if pooled.values.is_empty() {
            return Ok(Embeddings { values: Vec::new(), hidden_size: count });
        }
        let _turn = self.turn();
        let logits = classifier.forward(self.embedding.upload(pooled.values));
        Ok(Embeddings { values: lm_kernels::to_host(logits)?, hidden_size: count })
    }

    fn embed(&self, ids: &[TokenId]) -> Result<Embeddings> {
        let rows = self.info.logits_width;
        if let Some((row, &id)) = ids.iter().enumerate().find(|(_, id)| **id as usize >= rows) {
            return Err(Error::Batch { sequence: 0, problem: BatchProblem::UnknownToken { row, id, rows } });
        }
        let hidden_size = self.info.hidden_size;
        if ids.is_empty() {
            return Ok(Embeddings { values: Vec::new(), hidden_size });
        }
        Ok(Embeddings { values: lm_kernels::to_host(self.embedding.lookup(ids))?, hidden_size })
    }
}

impl Layer {
    fn load(loader: &mut LayerLoader<'_, '_>, spec: &LayerSpec) -> Result<Self> {
        let [mixer_residual, mlp_residual] = ResidualBlock::load_pair(loader, spec)?;
        let mixer = match &spec.mixer {
            Mixer::Attention(attention) => {
                MixerBlock::Attention(Box::new(Attention::load(loader, attention)?))
            }
            Mixer::LatentAttention(attention) => {
                MixerBlock::LatentAttention(Box::new(LatentAttention::load(loader, attention)?))
            }
            Mixer::ShortConv(conv) => MixerBlock::ShortConv(Box::new(ShortConv::load(loader, conv)?)),
            Mixer::DeltaNet(net) => MixerBlock::DeltaNet(Box::new(GatedDeltaNet::load(loader, net)?)),
            Mixer::Mamba2(net) => MixerBlock::Mamba2(Box::new(Mamba2Mixer::load(loader, net)?)),
            Mixer::Absent => MixerBlock::Absent,
        };
        let mlp = match &spec.mlp {
            Mlp::Gated(gated) => MlpBlock::Gated(Box::new(GatedMlp::load(loader, DENSE, *gated)?)),
            Mlp::Plain(plain) => MlpBlock::Plain(Box::new(PlainMlp::load(loader, *plain)?)),
            Mlp::Experts(experts) => MlpBlock::Experts(Box::new(MoeMlp::load(loader, experts)?)),
            Mlp::DenseAndMoe(gated, experts, branch) => {
                MlpBlock::DenseAndMoe(Box::new(DenseAndMoe::load(loader, *gated, experts, *branch)?))
            }
            Mlp::Absent => MlpBlock::Absent,
        };
        let per_layer_input = loader.spec.per_layer_inputs.map(|inputs| PerLayerInput::load(loader, inputs));
        let per_layer_input = per_layer_input.transpose()?;
        let streams = LayerStreams::load(loader)?;
        let scalar = match spec.scalar {
            LayerScalar::Absent => None,
            LayerScalar::Present => Some(loader.values(LayerParam::Scalar, 1)?[0]),
        };
        let is_parallel = spec.norms.is_parallel();
        Ok(Self { mixer_residual, mixer, mlp_residual, mlp, is_parallel, per_layer_input, streams, scalar })
    }

    /// Maps `[rows, hidden]` to the same shape; with several streams, `[rows, streams * hidden]`.
    fn forward(&self, x: Tensor<2>, context: &ForwardContext, cache: &mut KvPool) -> Result<Tensor<2>> {
        let (x, predicted) = self.streams.enter(x);
        let input = self.is_parallel.then(|| x.clone());
        let x = self.mix(x, context, cache);
        let x = self.streams.after_mixer(x, predicted.as_ref(), &self.mixer_residual);
        let x = self.feed_forward(x, input, context)?;
        let x = self.streams.leave(x, predicted, self.per_layer_input.as_ref(), context);
        Ok(scaled(x, self.scalar))
    }

    /// Returns `x`, `[rows, hidden]`, plus the mixer's output.
    fn mix(&self, x: Tensor<2>, context: &ForwardContext, cache: &mut KvPool) -> Tensor<2> {
        match &self.mixer {
            MixerBlock::Attention(attention) => attention.add_to(x, &self.mixer_residual, context, cache),
            MixerBlock::LatentAttention(attention) => {
                attention.add_to(x, &self.mixer_residual, context, cache)
            }
            MixerBlock::ShortConv(conv) => conv.add_to(x, &self.mixer_residual, context, cache),
            MixerBlock::DeltaNet(net) => net.add_to(x, &self.mixer_residual, context, cache),
            MixerBlock::Mamba2(net) => net.add_to(x, &self.mixer_residual, context, cache),
            MixerBlock::Absent => x,
        }
    }

    /// Returns `x`, `[rows, hidden]`, plus the feed-forward block's output for `input`, which is `x` unless
    /// the blocks are parallel.
    fn feed_forward(
        &self,
        x: Tensor<2>,
        input: Option<Tensor<2>>,
        context: &ForwardContext,
    ) -> Result<Tensor<2>> {
        let residual = &self.mlp_residual;
        let input = |x: &Tensor<2>| residual.input(input.unwrap_or_else(|| x.clone()));
        match &self.mlp {
            MlpBlock::Gated(mlp) => {
                let input = input(&x);
                Ok(mlp.add_to(x, input, residual, context))
            }
            MlpBlock::Plain(mlp) => {
                let input = input(&x);
                Ok(mlp.add_to(x, input, residual, context))
            }
            MlpBlock::Experts(mlp) => {
                let input = input(&x);
                mlp.add_to(x, input, residual)
            }
            // In no parallel layer: its parts have norms of their own.
            MlpBlock::DenseAndMoe(mlp) => mlp.add_to(x, residual, context),
            MlpBlock::Absent => Ok(x),
        }
    }

    /// Bytes of expert weights that a row is not routed to.
    fn inactive_bytes(&self) -> u64 {
        match &self.mlp {
            MlpBlock::Gated(_) | MlpBlock::Plain(_) | MlpBlock::Absent => 0,
            MlpBlock::Experts(experts) => experts.inactive_bytes(),
            MlpBlock::DenseAndMoe(both) => both.inactive_bytes(),
        }
    }
}
