use std::sync::Arc;

use lm_kernels::KvPool;
use lm_tokenizer::TokenId;

use crate::batch::{Batch, Embeddings, Logits};
use crate::causal_lm::{CausalLm, ModelInfo};
use crate::error::Result;

type PassHook = dyn Fn(&Batch) -> Result<()> + Send + Sync;
type LogitsHook = dyn Fn(Option<&Batch>, Logits) -> Logits + Send + Sync;
type AllocationHook = dyn Fn(usize) -> Result<()> + Send + Sync;

/// Another [`CausalLm`] with hooks: to wait, to record, to fail or to panic.
///
/// ```
/// use std::sync::Arc;
/// use lm_model::testing::{FakeLm, HookedLm};
/// use lm_model::{Batch, CausalLm, SequenceInput};
///
/// let poisoned = |batch: &Batch| panic!("{} sequences", batch.sequences.len());
/// let model = HookedLm::new(Arc::new(FakeLm::random(1, 300))).before_pass(poisoned);
/// let mut cache = model.new_cache(1)?;
/// let batch = Batch { sequences: vec![SequenceInput::ids(vec![7], 0, [0])] };
/// let pass = std::panic::AssertUnwindSafe(|| model.forward(&batch, &mut cache));
/// assert!(std::panic::catch_unwind(pass).is_err());
/// # Ok::<(), lm_model::Error>(())
/// ```
pub struct HookedLm {
    inner: Arc<dyn CausalLm>,
    before_pass: Box<PassHook>,
    map_logits: Box<LogitsHook>,
    before_allocation: Box<AllocationHook>,
}

impl HookedLm {
    /// Wraps `inner` without a hook.
    pub fn new(inner: Arc<dyn CausalLm>) -> Self {
        Self {
            inner,
            before_pass: Box::new(|_| Ok(())),
            map_logits: Box::new(|_, logits| logits),
            before_allocation: Box::new(|_| Ok(())),
        }
    }

    /// Calls `hook` before each forward pass, with its batch. The pass returns its error.
    #[must_use]
    pub fn before_pass(self, hook: impl Fn(&Batch) -> Result<()> + Send + Sync + 'static) -> Self {
        Self { before_pass: Box::new(hook), ..self }
    }

    /// Replaces all logits by the result of `hook`. It gets the batch as well, or `None` from
    /// [`CausalLm::head`].
    #[must_use]
    pub fn map_logits(self, hook: impl Fn(Option<&Batch>, Logits) -> Logits + Send + Sync + 'static) -> Self {
        Self { map_logits: Box::new(hook), ..self }
    }

    /// Calls `hook` before each allocation of a cache, with the number of its pages. The allocation returns
    /// its error.
    #[must_use]
    pub fn before_allocation(self, hook: impl Fn(usize) -> Result<()> + Send + Sync + 'static) -> Self {
        Self { before_allocation: Box::new(hook), ..self }
    }
}

impl CausalLm for HookedLm {
    fn info(&self) -> &ModelInfo {
        self.inner.info()
    }

    fn new_cache(&self, num_pages: usize) -> Result<KvPool> {
        (self.before_allocation)(num_pages)?;
        self.inner.new_cache(num_pages)
    }

    fn cache_bytes_per_page(&self) -> usize {
        self.inner.cache_bytes_per_page()
    }

    fn forward(&self, batch: &Batch, cache: &mut KvPool) -> Result<Logits> {
        (self.before_pass)(batch)?;
        let logits = self.inner.forward(batch, cache)?;
        Ok((self.map_logits)(Some(batch), logits))
    }

    fn hidden(&self, batch: &Batch, cache: &mut KvPool) -> Result<Embeddings> {
        (self.before_pass)(batch)?;
        self.inner.hidden(batch, cache)
    }

    fn head(&self, rows: Embeddings) -> Result<Logits> {
        let logits = self.inner.head(rows)?;
        Ok((self.map_logits)(None, logits))
    }

    fn embed(&self, ids: &[TokenId]) -> Result<Embeddings> {
        self.inner.embed(ids)
    }
}
