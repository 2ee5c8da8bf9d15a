//! The decoder that every architecture of [`crate::architectures`] is a spec of.

use burn::tensor::{Int, Tensor};

use crate::blocks::{
    Attention, Embedding, ExpertsMlp, GatedDeltaNet, GatedMlp, IdleWeights, Pass, RmsNorm, Rotation,
    ShortConv, Sublayer,
};
use crate::layout::{adapted_rows, layouts, wanted_rows};
use crate::spec::{DecoderSpec, LayerSpec, Mixer, Mlp};
use crate::validate::{BatchLimits, check_batch};
use crate::weights::{Param, WeightLoader};
use crate::{
    Batch, BatchProblem, CacheLayout, CausalLm, Device, Embeddings, Error, Input, KvDtype, KvPool, Logits,
    ModelInfo, Result, TokenId,
};

/// A decoder on one device.
pub(crate) struct Decoder {
    info: ModelInfo,
    embedding: Embedding,
    layers: Vec<Layer>,
    norm: RmsNorm,
    rotations: Vec<Rotation>,
    cache_layout: CacheLayout,
    kv_dtype: KvDtype,
    bytes_per_page: usize,
}

/// One layer: each block with what stands around it.
struct Layer {
    around_mixer: Sublayer,
    mixer: MixerBlock,
    around_mlp: Sublayer,
    mlp: MlpBlock,
}

enum MixerBlock {
    Attention(Box<Attention>),
    ShortConv(Box<ShortConv>),
    DeltaNet(Box<GatedDeltaNet>),
}

enum MlpBlock {
    Gated(Box<GatedMlp>),
    Experts(Box<ExpertsMlp>),
}

impl Decoder {
    /// Loads the weights of `spec`; `loader` has checked that they are there.
    pub(crate) fn load(
        architecture: String,
        spec: DecoderSpec,
        device: Device,
        kv_dtype: KvDtype,
        mut loader: WeightLoader<'_>,
    ) -> Result<Self> {
        let embedding = Embedding::load(&mut loader, &spec)?;
        let outside = loader.parameters;
        let layers = spec.layers.iter().enumerate();
        let layers = layers
            .map(|(index, layer)| Layer::load(&mut loader, &spec, layer, index))
            .collect::<Result<Vec<_>>>()?;
        let layer_parameters = loader.parameters - outside;
        let norm = RmsNorm::load(&mut loader, &spec, Param::OutputNorm, spec.hidden_size)?;
        let cache_layout = spec.cache_layout();
        let idle = |count: fn(IdleWeights) -> u64| layers.iter().map(Layer::idle).map(count).sum::<u64>();
        let info = ModelInfo {
            adapters: loader.adapter_infos(&architecture)?,
            architecture,
            context_len: spec.context_len,
            hidden_size: spec.hidden_size,
            num_layers: spec.layers.len(),
            logits_width: spec.vocab_size,
            parameters: loader.parameters,
            weight_bytes: loader.weight_bytes,
            layer_parameters: layer_parameters - idle(|idle| idle.parameters),
            decode_bytes: loader.weight_bytes - embedding.bytes_of_table_alone() - idle(|idle| idle.bytes),
            device,
            format: embedding.format(),
        };
        // A device may store keys and values wider than asked for: a pool of one page knows.
        let bytes_per_page = KvPool::new(device, &cache_layout, 1, kv_dtype)?.bytes_per_page();
        let rotations = spec.ropes.into_iter().map(Rotation::new).collect();
        Ok(Self { info, embedding, layers, norm, rotations, cache_layout, kv_dtype, bytes_per_page })
    }

    /// The new rows of all sequences, one sequence after another: `[rows, hidden]`.
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
        Tensor::cat(parts, 0)
    }

    fn pass(&self, batch: &Batch) -> Pass {
        let device = self.embedding.device();
        Pass {
            layouts: layouts(batch, self.cache_layout.groups().len()),
            turns: self.rotations.iter().map(|rotation| rotation.turn(batch, device)).collect(),
            adapted: adapted_rows(batch),
        }
    }
}

impl CausalLm for Decoder {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn new_cache(&self, num_pages: usize) -> Result<KvPool> {
        Ok(KvPool::new(self.info.device, &self.cache_layout, num_pages, self.kv_dtype)?)
    }

    fn cache_bytes_per_page(&self) -> usize {
        self.bytes_per_page
    }

    fn forward(&self, batch: &Batch, cache: &mut KvPool) -> Result<Logits> {
        if *cache.layout() != self.cache_layout {
            let [expected, got] = [&self.cache_layout, cache.layout()].map(|layout| layout.layers().len());
            return Err(Error::ForeignCache { expected, got });
        }
        check_batch(batch, &BatchLimits::new(&self.info, cache))?;
        let (wanted, counts) = wanted_rows(batch);
        let width = self.info.logits_width;
        if batch.sequences.is_empty() {
            return Ok(Logits::new(Vec::new(), width, counts));
        }
        let pass = self.pass(batch);
        let mut x = self.input_rows(batch); // [rows, hidden]
        for layer in &self.layers {
            x = layer.forward(x, &pass, cache)?;
        }
        if wanted.is_empty() {
            return Ok(Logits::new(Vec::new(), width, counts));
        }
        let index = Tensor::<1, Int>::from_data(wanted.as_slice(), &x.device());
        let x = self.norm.forward(x.select(0, index)); // [wanted, hidden]
        let values = lm_kernels::to_host(self.embedding.logits(x))?; // [wanted, vocab]
        Ok(Logits::new(values, width, counts))
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
    fn load(
        loader: &mut WeightLoader<'_>,
        spec: &DecoderSpec,
        layer: &LayerSpec,
        index: usize,
    ) -> Result<Self> {
        let [around_mixer, around_mlp] = Sublayer::load_pair(loader, spec, index, layer.norms)?;
        let mixer = match &layer.mixer {
            Mixer::Attention(attention) => {
                MixerBlock::Attention(Box::new(Attention::load(loader, spec, attention, index)?))
            }
            Mixer::ShortConv(conv) => {
                MixerBlock::ShortConv(Box::new(ShortConv::load(loader, spec, conv, index)?))
            }
            Mixer::DeltaNet(net) => {
                MixerBlock::DeltaNet(Box::new(GatedDeltaNet::load(loader, spec, net, index)?))
            }
        };
        let mlp = match layer.mlp {
            Mlp::Experts(ref experts) => {
                MlpBlock::Experts(Box::new(ExpertsMlp::load(loader, experts, spec.hidden_size, index)?))
            }
            Mlp::Gated { intermediate_size, activation, bias } => {
                let widths = [spec.hidden_size, intermediate_size];
                MlpBlock::Gated(Box::new(GatedMlp::load(loader, index, widths, activation, bias)?))
            }
        };
        Ok(Self { around_mixer, mixer, around_mlp, mlp })
    }

    /// `[rows, hidden]` to the same.
    fn forward(&self, x: Tensor<2>, pass: &Pass, cache: &mut KvPool) -> Result<Tensor<2>> {
        let x = match &self.mixer {
            MixerBlock::Attention(attention) => attention.add_to(x, &self.around_mixer, pass, cache),
            MixerBlock::ShortConv(conv) => conv.add_to(x, &self.around_mixer, pass, cache),
            MixerBlock::DeltaNet(net) => net.add_to(x, &self.around_mixer, pass, cache),
        };
        match &self.mlp {
            MlpBlock::Gated(mlp) => Ok(mlp.add_to(x, &self.around_mlp, pass)),
            MlpBlock::Experts(mlp) => mlp.add_to(x, &self.around_mlp),
        }
    }

    /// What a row passes by.
    fn idle(&self) -> IdleWeights {
        match &self.mlp {
            MlpBlock::Gated(_) => IdleWeights::default(),
            MlpBlock::Experts(experts) => experts.idle(),
        }
    }
}
