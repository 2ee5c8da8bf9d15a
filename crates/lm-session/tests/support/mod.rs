//! Shared helpers of the engine's tests.
#![allow(clippy::unwrap_used, reason = "a helper of tests fails as a test does")]
#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use lm_model::testing::HookedLm;
use lm_model::{Batch, Input, KvGeometry, LayerCache, Logits};
use lm_session::testing::{FakeLm, loaded, tokenizer};
use lm_session::{
    Constraint, Ending, Engine, EngineSettings, Error, FilterFactory, Finished, GenerateParams, History,
    LoadedModel, LogitsFilter, Result, SamplerParams, Session, SessionConfig, SessionEvent, TokenId,
    TokenLogits, TokenMask,
};

/// A constraint that calls `before` and allows every token.
#[derive(Clone)]
pub struct AllowAll<F> {
    pub before: F,
    pub state_bytes: usize,
}

impl<F> std::fmt::Debug for AllowAll<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AllowAll")
    }
}

impl<F: Fn() + Clone + Send + 'static> Constraint for AllowAll<F> {
    fn mask(&mut self, mask: &mut TokenMask) -> Result<()> {
        (self.before)();
        mask.allow_all();
        Ok(())
    }

    fn commit(&mut self, _: TokenId) -> Result<()> {
        Ok(())
    }

    fn rollback(&mut self, _: usize) -> Result<()> {
        Ok(())
    }

    fn ending(&mut self) -> Result<Ending> {
        Ok(Ending::Allowed)
    }

    fn fork(&self) -> Box<dyn Constraint> {
        Box::new(self.clone())
    }

    fn state_bytes(&self) -> usize {
        self.state_bytes
    }
}

/// Prefills `prompts`, each in its own session on one engine; returns the number of cached tokens of the last
/// one, and the bits of the logits of its last token.
pub fn last_logits(loaded: LoadedModel, prompts: &[&[TokenId]]) -> (usize, Vec<u32>) {
    let logits = Arc::new(Mutex::new(Vec::new()));
    let record = {
        let logits = logits.clone();
        move |_: Option<&Batch>, found: Logits| {
            let rows = (0..found.num_sequences()).flat_map(|sequence| found.sequence(sequence).rows());
            logits
                .lock()
                .unwrap()
                .extend(rows.map(|row| row.iter().map(|x| x.to_bits()).collect::<Vec<_>>()));
            found
        }
    };
    let model = Arc::new(HookedLm::new(loaded.model).map_logits(record));
    let engine = Engine::new(LoadedModel { model, ..loaded }, EngineSettings::default()).unwrap();
    let mut cached = 0;
    for ids in prompts {
        let mut session = engine.session(SessionConfig::default()).unwrap();
        cached = session.prefill(*ids).unwrap().cached_tokens;
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
    let model = HookedLm::new(inner.clone()).before_pass(before);
    let engine = Engine::new(loaded(model), settings).unwrap();
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

/// A hook that waits in front of every forward pass until its sender is dropped.
pub fn gate()
-> (impl Fn(&lm_model::Batch) -> lm_model::Result<()> + Send + Sync + 'static, Receiver<()>, Sender<()>) {
    let (arrive, arrived) = channel();
    let (open, opened) = channel::<()>();
    let ends = Mutex::new((arrive, opened));
    let wait = move |_: &lm_model::Batch| {
        let ends = &*ends.lock().unwrap();
        let _ = ends.0.send(());
        let _ = ends.1.recv();
        Ok(())
    };
    (wait, arrived, open)
}

pub fn tokens(max: usize) -> GenerateParams {
    GenerateParams { max_output_tokens: Some(max), ..GenerateParams::default() }
}

pub fn last(events: impl Iterator<Item = lm_session::Result<SessionEvent>>) -> Finished {
    match events.last() {
        Some(Ok(SessionEvent::Finished(finished))) => finished,
        other => panic!("no last event: {other:?}"),
    }
}

/// A filter that waits for its channel in the first step: its request runs until the sender is dropped.
#[derive(Debug)]
struct Gate(Arc<Mutex<Receiver<()>>>);

impl LogitsFilter for Gate {
    fn apply(&mut self, _: &mut TokenLogits, _: &History<'_>) {
        let _ = self.0.lock().unwrap().recv();
    }
}

/// Parameters of a generation whose first step waits until the sender is dropped.
pub fn gated() -> (Sender<()>, GenerateParams) {
    let (open, opened) = channel();
    let opened = Arc::new(Mutex::new(opened));
    let filters = vec![FilterFactory::new(move || Gate(opened.clone()))];
    let sampler = Some(SamplerParams { filters, ..SamplerParams::default() });
    (open, GenerateParams { sampler, max_output_tokens: Some(3), ..GenerateParams::default() })
}
