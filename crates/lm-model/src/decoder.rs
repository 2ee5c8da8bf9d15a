//! The decoder that every architecture of [`crate::architectures`] is a spec of.

use std::sync::Arc;

use burn::tensor::{Int, Tensor};
use lm_kernels::RopeTable;

use crate::blocks::{Attention, Embedding, GatedMlp, Pass, RmsNorm};
use crate::layout::{layouts, wanted_rows};
use crate::spec::DecoderSpec;
use crate::validate::{BatchLimits, check_batch};
use crate::weights::{LayerParam, Param, WeightLoader};
use crate::{
    Batch, BatchProblem, CacheLayout, CausalLm, Device, Embeddings, Error, Input, KvDtype, KvGeometry,
    KvPool, Logits, ModelInfo, Result, TokenId,
};

/// A pre-norm decoder on one device.
pub(crate) struct Decoder {
    info: ModelInfo,
    embedding: Embedding,
    layers: Vec<Layer>,
    norm: RmsNorm,
    rope: RopeTable,
    cache_layout: CacheLayout,
    kv_dtype: KvDtype,
    bytes_per_page: usize,
}

struct Layer {
    attention_norm: RmsNorm,
    attention: Attention,
    mlp_norm: RmsNorm,
    mlp: GatedMlp,
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
        let layers = (0..spec.layers.len())
            .map(|layer| Layer::load(&mut loader, &spec, layer))
            .collect::<Result<_>>()?;
        let layer_parameters = loader.parameters - outside;
        let norm = RmsNorm::load(&mut loader, Param::OutputNorm, spec.hidden_size, spec.norm_eps)?;
        let cache_layout = CacheLayout::new(spec.layers.iter().map(|window| KvGeometry {
            num_kv_heads: spec.num_kv_heads,
            head_dim: spec.head_dim,
            window: window.slots(),
            shares: None,
        }));
        let info = ModelInfo {
            architecture,
            context_len: spec.context_len,
            hidden_size: spec.hidden_size,
            num_layers: spec.layers.len(),
            logits_width: spec.vocab_size,
            parameters: loader.parameters,
            weight_bytes: loader.weight_bytes,
            layer_parameters,
            decode_bytes: loader.weight_bytes - embedding.bytes_of_table_alone(),
            device,
            format: embedding.format(),
        };
        // A device may store keys and values wider than asked for: a pool of one page knows.
        let bytes_per_page = KvPool::new(device, &cache_layout, 1, kv_dtype)?.bytes_per_page();
        let rope = spec.rope.table(spec.head_dim);
        Ok(Self { info, embedding, layers, norm, rope, cache_layout, kv_dtype, bytes_per_page })
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
        let positions: Vec<u32> =
            batch.sequences.iter().flat_map(|sequence| sequence.positions.iter().copied()).collect();
        Pass {
            layouts: layouts(batch, self.cache_layout.groups().len()),
            angles: Arc::new(self.rope.angles(&positions)),
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
            x = layer.forward(x, &pass, cache);
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
    fn load(loader: &mut WeightLoader<'_>, spec: &DecoderSpec, layer: usize) -> Result<Self> {
        let norm = |loader: &mut WeightLoader<'_>, param| {
            RmsNorm::load(loader, Param::Layer(layer, param), spec.hidden_size, spec.norm_eps)
        };
        Ok(Self {
            attention_norm: norm(loader, LayerParam::AttentionNorm)?,
            attention: Attention::load(loader, spec, layer)?,
            mlp_norm: norm(loader, LayerParam::MlpNorm)?,
            mlp: GatedMlp::load(loader, spec, layer)?,
        })
    }

    /// `[rows, hidden]` to the same.
    fn forward(&self, x: Tensor<2>, pass: &Pass, cache: &mut KvPool) -> Tensor<2> {
        let x = self.attention.add_to(x, &self.attention_norm, pass, cache);
        self.mlp.add_to(x, &self.mlp_norm)
    }
}
