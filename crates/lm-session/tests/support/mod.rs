//! What the tests of the engine share.
#![allow(clippy::unwrap_used, reason = "a helper of tests fails as a test does")]
#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::Arc;

use lm_model::{Batch, Embeddings, Input, KvPool, Logits};
use lm_session::testing::{FakeLm, loaded, tokenizer};
use lm_session::{
    CausalLm, Engine, EngineSettings, Error, GenerateParams, ModelInfo, Result, Session, SessionEvent,
    TokenId,
};

/// A model that calls `before` ahead of every forward pass: to fail, to panic or to wait.
pub struct Hooked<F> {
    pub inner: Arc<FakeLm>,
    pub before: F,
}

impl<F: Fn(&Batch) -> lm_model::Result<()> + Send + Sync> CausalLm for Hooked<F> {
    fn info(&self) -> &ModelInfo {
        self.inner.info()
    }

    fn new_cache(&self, num_pages: usize) -> lm_model::Result<KvPool> {
        self.inner.new_cache(num_pages)
    }

    fn cache_bytes_per_page(&self) -> usize {
        self.inner.cache_bytes_per_page()
    }

    fn forward(&self, batch: &Batch, cache: &mut KvPool) -> lm_model::Result<Logits> {
        (self.before)(batch)?;
        self.inner.forward(batch, cache)
    }

    fn embed(&self, ids: &[TokenId]) -> lm_model::Result<Embeddings> {
        self.inner.embed(ids)
    }
}

/// A model whose logits depend on every token before, so that a wrong cache shows.
pub fn random_model() -> FakeLm {
    FakeLm::random(11, tokenizer().logits_width())
}

/// An engine over [`random_model`].
pub fn random_engine(settings: EngineSettings) -> Engine {
    Engine::new(loaded(random_model()), settings).unwrap()
}

/// An engine over [`random_model`] with a hook, and the model for its record of calls.
pub fn hooked_engine(
    settings: EngineSettings,
    before: impl Fn(&Batch) -> lm_model::Result<()> + Send + Sync + 'static,
) -> (Engine, Arc<FakeLm>) {
    let inner = Arc::new(random_model());
    let engine = Engine::new(loaded(Hooked { inner: inner.clone(), before }), settings).unwrap();
    (engine, inner)
}

/// Whether a batch runs token `id`.
pub fn runs(batch: &Batch, id: TokenId) -> bool {
    batch.sequences.iter().any(|sequence| matches!(&sequence.input, Input::Ids(ids) if ids.contains(&id)))
}

/// Reads a generation of `max_output_tokens` to its end; its ids.
pub fn generate(session: &mut Session, max_output_tokens: usize) -> Result<Vec<TokenId>> {
    let max_output_tokens = Some(max_output_tokens);
    let events = session.generate(GenerateParams { max_output_tokens, ..GenerateParams::default() });
    ids(events)
}

/// The ids of all token events.
pub fn ids(events: impl Iterator<Item = Result<SessionEvent>>) -> Result<Vec<TokenId>> {
    let id = |event| match event {
        Ok(SessionEvent::Token { id, .. }) => Some(Ok(id)),
        Ok(SessionEvent::Finished(_)) => None,
        Err(error) => Some(Err(error)),
    };
    events.filter_map(id).collect()
}

/// A prompt of `len` tokens that differs with `seed`.
pub fn prompt(seed: u32, len: usize) -> Vec<TokenId> {
    (0..len as u32).map(|position| (position * 31 + seed * 17) % 200).collect()
}

/// The error of a generation's last event.
pub fn last_error(events: impl Iterator<Item = Result<SessionEvent>>) -> Error {
    events.last().expect("a generation has a last event").expect_err("the generation was to fail")
}
