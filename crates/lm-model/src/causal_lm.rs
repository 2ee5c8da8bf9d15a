//! Model interface: a forward pass over a ragged batch.

use lm_kernels::{Device, KvPool, WeightFormat};
use lm_tokenizer::TokenId;

use crate::batch::{Batch, Embeddings, Logits};
use crate::error::{Error, Result};
use crate::spec::{AttentionShape, Direction, ModelOutput};

/// Decoder that turns a ragged batch into logits over a paged KV pool.
///
/// Sampling, prompts and sessions are built on top of it. Prefill and decode steps, token ids and embedding
/// rows, one sequence or many: all go through [`CausalLm::forward`].
pub trait CausalLm: Send + Sync {
    /// Facts about the model.
    fn info(&self) -> &ModelInfo;

    /// Creates an empty pool on the model's device whose groups hold `num_pages` pages of [`crate::PAGE_LEN`]
    /// tokens each; [`KvPool::layout`] lists the groups and what each of them needs.
    ///
    /// # Errors
    /// When the device is not compiled in or cannot hold the pool.
    fn new_cache(&self, num_pages: usize) -> Result<KvPool>;

    /// Bytes of a page of tokens, summed over all groups: [`KvPool::bytes_per_page`] of a pool from
    /// [`CausalLm::new_cache`].
    fn cache_bytes_per_page(&self) -> usize;

    /// Runs every sequence's new rows, writes their keys, values and states to the pages that
    /// [`crate::Retention::written`] names and returns the requested logits.
    ///
    /// A sequence's logits depend neither on the other sequences of the batch nor on how its rows are chunked
    /// over calls, as long as these calls have the same final length ([`crate::SequenceInput::final_len`]; it
    /// matters for `dynamic` and `longrope` RoPE only). Rows past the final length have the logits that they
    /// have in calls of one row each.
    ///
    /// # Errors
    /// [`crate::Error::Batch`] when a sequence cannot run; `cache` is unchanged then.
    /// [`crate::Error::NoTokens`] when logits are asked of a model that gives no tokens.
    fn forward(&self, batch: &Batch, cache: &mut KvPool) -> Result<Logits>;

    /// Returns true if another model runs on this model's device or waits for it: forward passes on the CPU
    /// take turns.
    fn shares_device(&self) -> bool {
        false
    }

    /// Like [`CausalLm::forward`], but returns the final hidden states of the rows whose logits are
    /// requested, the input of the output head: the rows of all sequences, concatenated. [`CausalLm::head`]
    /// computes logits from any number of them at a time.
    ///
    /// # Errors
    /// The errors of [`CausalLm::forward`].
    fn hidden(&self, batch: &Batch, cache: &mut KvPool) -> Result<Embeddings>;

    /// Computes the logits of rows of [`CausalLm::hidden`], as one sequence; equal to the logits of
    /// [`CausalLm::forward`].
    ///
    /// # Errors
    /// [`crate::Error::Batch`] (sequence 0) for rows of another width; the errors of the device.
    fn head(&self, rows: Embeddings) -> Result<Logits>;

    /// Computes the logits of labels of pooled hidden states, `[texts, labels]`: of a text's rows of
    /// [`CausalLm::hidden`], pooled as [`ModelOutput::Labels`] says.
    ///
    /// # Errors
    /// [`crate::Error::NoLabels`] for a model without a classifier, as by default; [`crate::Error::Batch`]
    /// (sequence 0) for rows of another width; the errors of the device.
    fn classify(&self, pooled: Embeddings) -> Result<Embeddings> {
        let _ = pooled;
        Err(Error::NoLabels { architecture: self.info().architecture.clone() })
    }

    /// Returns the embedding rows that [`CausalLm::forward`] looks up for `ids`, scaling included.
    ///
    /// # Errors
    /// [`crate::Error::Batch`] (sequence 0) for an id outside the embedding table.
    fn embed(&self, ids: &[TokenId]) -> Result<Embeddings>;
}

/// Facts about a loaded model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelInfo {
    /// `model_type` of the config: `qwen3`, `llama`, ...
    pub architecture: String,
    /// Maximum number of slots of a sequence, and exclusive upper bound of its positions.
    pub context_len: usize,
    /// Width of an embedding row.
    pub hidden_size: usize,
    /// Number of decoder layers.
    pub num_layers: usize,
    /// Width of a row of logits; can exceed the tokenizer's vocabulary.
    pub logits_width: usize,
    /// Checksum of the model's settings and of samples of all its stored tensors; 0 for a model without
    /// files.
    pub checksum: u64,
    /// Number of parameters; shared ones count once.
    pub parameters: u64,
    /// Bytes of the loaded weights in memory.
    pub weight_bytes: u64,
    /// Parameters of the decoder's layers that are active for one prompt token: of experts, only those it is
    /// routed to.
    pub layer_parameters: u64,
    /// Attention layers, in order.
    pub attention: Vec<AttentionShape>,
    /// Bytes of `weight_bytes` that a decode step of one sequence reads: all except embeddings that are not
    /// also the output head, and the experts that the token is not routed to.
    pub decode_bytes: u64,
    /// Output beyond hidden states; [`CausalLm::forward`] and [`CausalLm::head`] need tokens.
    pub output: ModelOutput,
    /// Reading direction. A bidirectional model needs no cache, and all rows of a text in one call.
    pub direction: Direction,
    /// Device the model runs on.
    pub device: Device,
    /// Format of the embedding table, and of the linear weights unless [`formats`](Self::formats) has others.
    pub format: WeightFormat,
    /// Formats of all matrices except those that are floats in every format, that of most weights first.
    pub formats: Vec<WeightFormat>,
}

impl ModelInfo {
    /// Names of the [`formats`](Self::formats), separated by commas: `q4_k, q6_k`.
    pub fn format_names(&self) -> String {
        self.formats.iter().map(WeightFormat::to_string).collect::<Vec<_>>().join(", ")
    }
}
