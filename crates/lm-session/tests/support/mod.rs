//! Shared helpers of the engine's tests.
#![allow(clippy::unwrap_used, reason = "a helper of tests fails as a test does")]
#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::{Arc, Mutex};

use lm_model::{Batch, Embeddings, Input, KvGeometry, KvPool, LayerCache, Logits};
use lm_session::testing::{FakeLm, loaded, tokenizer};
use lm_session::{
    CausalLm, Engine, EngineSettings, Error, GenerateParams, LoadedModel, ModelInfo, Result, SamplerParams,
    Session, SessionConfig, SessionEvent, TokenId,
};

/// A model that calls `before` before every forward pass: to fail, to panic or to wait.
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

    fn hidden(&self, batch: &Batch, cache: &mut KvPool) -> lm_model::Result<Embeddings> {
        (self.before)(batch)?;
        self.inner.hidden(batch, cache)
    }

    fn head(&self, rows: Embeddings) -> lm_model::Result<Logits> {
        self.inner.head(rows)
    }

    fn embed(&self, ids: &[TokenId]) -> lm_model::Result<Embeddings> {
        self.inner.embed(ids)
    }
}

/// Records the bits of the logits of every call.
struct Recorder {
    inner: Arc<dyn CausalLm>,
    logits: Arc<Mutex<Vec<Vec<u32>>>>,
}

impl CausalLm for Recorder {
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
        let logits = self.inner.forward(batch, cache)?;
        let rows = (0..logits.num_sequences()).flat_map(|sequence| logits.sequence(sequence).rows());
        self.logits.lock().unwrap().extend(rows.map(|row| row.iter().map(|x| x.to_bits()).collect()));
        Ok(logits)
    }

    fn hidden(&self, batch: &Batch, cache: &mut KvPool) -> lm_model::Result<Embeddings> {
        self.inner.hidden(batch, cache)
    }

    fn head(&self, rows: Embeddings) -> lm_model::Result<Logits> {
        self.inner.head(rows)
    }

    fn embed(&self, ids: &[TokenId]) -> lm_model::Result<Embeddings> {
        self.inner.embed(ids)
    }
}

/// Prefills `prompts`, each in its own session on one engine; returns the number of cached tokens of the last one, and the bits
/// of the logits of its last token.
pub fn last_logits(loaded: LoadedModel, prompts: &[&[TokenId]]) -> (usize, Vec<u32>) {
    let logits = Arc::new(Mutex::new(Vec::new()));
    let model = Arc::new(Recorder { inner: loaded.model, logits: logits.clone() });
    let engine = Engine::new(LoadedModel { model, ..loaded }, EngineSettings::default()).unwrap();
    let mut cached = 0;
    for ids in prompts {
        let mut session = engine.session(SessionConfig::default()).unwrap();
        cached = session.prefill(ids).unwrap().cached_tokens;
    }
    let bits = logits.lock().unwrap().pop().expect("a prefill gives logits");
    (cached, bits)
}

/// A model whose logits depend on all earlier tokens, so that a wrong cache is detected.
pub fn random_model() -> FakeLm {
    FakeLm::random(11, tokenizer().logits_width())
}

/// A layer with full attention.
pub const FULL: LayerCache = LayerCache::Kv(KV);
/// A layer with sliding-window attention.
pub const NEAR: LayerCache = LayerCache::Kv(KvGeometry { window: Some(40), ..KV });
/// A layer with a recurrent state.
pub const STATE: LayerCache = LayerCache::State { len: 5 };
const KV: KvGeometry =
    KvGeometry { num_kv_heads: 1, head_dim: FakeLm::HEAD_DIM, window: None, shared_with: None };

/// Combinations of cache kinds in a model.
pub fn kinds() -> Vec<Vec<LayerCache>> {
    let shared = |layer: LayerCache, owner| match layer {
        LayerCache::Kv(geometry) => LayerCache::Kv(KvGeometry { shared_with: Some(owner), ..geometry }),
        LayerCache::State { .. } => layer,
    };
    vec![
        vec![FULL],
        vec![NEAR, FULL, NEAR, shared(FULL, 1), shared(NEAR, 2)],
        vec![FULL, STATE],
        vec![STATE, NEAR, STATE],
        vec![STATE],
    ]
}

/// An engine over [`random_model`] with these layers.
pub fn engine_of(layers: &[LayerCache], settings: EngineSettings) -> Engine {
    Engine::new(loaded(random_model().with_layers(layers.iter().copied())), settings).unwrap()
}

/// A session whose generations never end by an end token.
pub fn endless(engine: &Engine) -> Session {
    let forbid_end = engine.tokenizer().end_ids().iter().map(|&id| (id, f32::NEG_INFINITY)).collect();
    let sampler = SamplerParams { logit_bias: forbid_end, ..SamplerParams::default() };
    engine.session(SessionConfig { sampler, ..SessionConfig::default() }).unwrap()
}

/// Number of pages held by sessions.
pub fn pages_held(engine: &Engine) -> usize {
    let stats = engine.cache_stats().unwrap();
    stats.total_pages - stats.free_pages
}

/// An engine over [`random_model`].
pub fn random_engine(settings: EngineSettings) -> Engine {
    Engine::new(loaded(random_model()), settings).unwrap()
}

/// An engine over [`random_model`] with a hook, and the model, which records its calls.
pub fn hooked_engine(
    settings: EngineSettings,
    before: impl Fn(&Batch) -> lm_model::Result<()> + Send + Sync + 'static,
) -> (Engine, Arc<FakeLm>) {
    let inner = Arc::new(random_model());
    let engine = Engine::new(loaded(Hooked { inner: inner.clone(), before }), settings).unwrap();
    (engine, inner)
}

/// Returns true if a batch runs token `id`.
pub fn runs(batch: &Batch, id: TokenId) -> bool {
    batch.sequences.iter().any(|sequence| matches!(&sequence.input, Input::Ids(ids) if ids.contains(&id)))
}

/// Reads a generation of `max_output_tokens` to its end and returns its ids.
pub fn generate(session: &mut Session, max_output_tokens: usize) -> Result<Vec<TokenId>> {
    let max_output_tokens = Some(max_output_tokens);
    let events = session.generate(GenerateParams { max_output_tokens, ..GenerateParams::default() });
    ids(events)
}

/// Ids of all token events.
pub fn ids(events: impl Iterator<Item = Result<SessionEvent>>) -> Result<Vec<TokenId>> {
    let id = |event| match event {
        Ok(SessionEvent::Token { id, .. }) => Some(Ok(id)),
        Ok(SessionEvent::Prefill(_) | SessionEvent::PromptLogprobs(_) | SessionEvent::Finished(_)) => None,
        Err(error) => Some(Err(error)),
    };
    events.filter_map(id).collect()
}

/// A prompt of `len` tokens that depends on `seed`.
pub fn prompt(seed: u32, len: usize) -> Vec<TokenId> {
    (0..len as u32).map(|position| (position * 31 + seed * 17) % 200).collect()
}

/// Error of a generation's last event.
pub fn last_error(events: impl Iterator<Item = Result<SessionEvent>>) -> Error {
    events.last().expect("a generation has a last event").expect_err("the generation was to fail")
}
