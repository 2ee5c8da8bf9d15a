//! The one door to a model: a forward pass over a ragged batch.

use crate::{AdapterInfo, Batch, Device, Embeddings, KvPool, Logits, Result, TokenId, WeightFormat};

/// A decoder that turns a ragged batch into logits over a paged KV pool.
///
/// Sampling, prompts and sessions are above it; prefill and decode steps, ids and embedding rows, one sequence or
/// many all go through [`CausalLm::forward`].
pub trait CausalLm: Send + Sync {
    /// What the model is.
    fn info(&self) -> &ModelInfo;

    /// An empty pool on the model's device whose groups can hold `num_pages` pages of [`crate::PAGE_LEN`] tokens each;
    /// [`KvPool::layout`] says how many groups there are and what each of them needs.
    ///
    /// # Errors
    /// When the device is not compiled in or cannot hold the pool.
    fn new_cache(&self, num_pages: usize) -> Result<KvPool>;

    /// Bytes of a page of tokens over all groups: [`KvPool::bytes_per_page`] of [`CausalLm::new_cache`].
    fn cache_bytes_per_page(&self) -> usize;

    /// Runs every sequence's new rows, writes their keys, values and states to the pages that [`crate::Keeps::written`] names
    /// and returns the wanted logits.
    ///
    /// A sequence's logits do not depend on the other sequences of the batch, nor on how its rows are split over calls that are
    /// planned to come to one length ([`crate::SequenceInput::planned_len`]; it matters for `dynamic` and `longrope` RoPE only).
    ///
    /// # Errors
    /// [`crate::Error::Batch`] when a sequence cannot run; then `cache` is as it was.
    fn forward(&self, batch: &Batch, cache: &mut KvPool) -> Result<Logits>;

    /// The embedding rows that [`CausalLm::forward`] looks up for `ids`, scaling included.
    ///
    /// # Errors
    /// [`crate::Error::Batch`] (sequence 0) for an id that the embedding does not have.
    fn embed(&self, ids: &[TokenId]) -> Result<Embeddings>;
}

/// Facts about a loaded model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelInfo {
    /// `model_type` of the config: `qwen3`, `llama`, ...
    pub architecture: String,
    /// Most slots and highest position (exclusive) of a sequence.
    pub context_len: usize,
    /// Width of an embedding row.
    pub hidden_size: usize,
    /// Number of decoder layers.
    pub num_layers: usize,
    /// Width of a row of logits; can exceed the tokenizer's vocabulary.
    pub logits_width: usize,
    /// Number of weights, shared ones counted once.
    pub parameters: u64,
    /// Bytes that the weights take in memory as loaded.
    pub weight_bytes: u64,
    /// Parameters of the decoder's layers that a token of a prompt is multiplied with: of experts, as many as it goes through.
    pub layer_parameters: u64,
    /// Those of `weight_bytes` that a decode step of one sequence reads: all but an embedding which is not the output head too, and but the
    /// experts that its token does not go through.
    pub decode_bytes: u64,
    /// Where it runs.
    pub device: Device,
    /// Format of the linear weights.
    pub format: WeightFormat,
    /// The adapters that were loaded with it; [`AdapterId`](crate::AdapterId) is an index here.
    pub adapters: Vec<AdapterInfo>,
}
