//! Engine: a handle to the worker thread that owns the model and the KV cache.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

use lm_model::{
    ChatTemplateSource, CrossEncoderConfig, EmbeddingConfig, GenerationConfig, LoadOptions, LoadProgress,
    LoadedModel, ModelFolder, ModelInfo, ModelOutput,
};
use lm_tokenizer::{TokenId, Tokenizer};

use crate::cache::Capacity;
use crate::constraint::GrammarCompiler;
use crate::engine::activity::ActivityGauge;
use crate::engine::adapter_registry::EngineAdapters;
use crate::engine::derived::DerivedValues;
use crate::engine::idle::TaskCount;
use crate::engine::media::EngineMedia;
use crate::engine::residency::{ModelSource, Residency};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::generate::{ClosingTokens, PromptRows};
use crate::ids::SessionId;
use crate::metrics::CacheStats;
use crate::params::EngineSettings;
use crate::record::Recorder;
use crate::scheduler::{Admission, Command, Request, is_engine_thread};
use crate::speculation::Speculation;

mod activity;
mod adapter_registry;
mod adapters;
mod derived;
mod grammars;
mod idle;
mod media;
mod memory;
mod models;
mod prefetch;
mod recording;
mod residency;
mod worker;

pub use activity::EngineActivity;
pub use idle::EngineTask;
pub use media::MediaTokens;
pub use models::{ModelState, Models};

/// A loaded model that serves any number of sessions.
///
/// The engine is a cheap handle: clones share one worker thread, which owns the weights and the KV pool and
/// batches the requests of all sessions. The engine's threads end with [`Engine::shutdown`], or when the last
/// engine and the last session are dropped, which waits for them. A panic in the model's code, a constraint
/// or a filter ends the request that caused it with [`Error::WorkerPanicked`]; the others continue.
///
/// ```
/// use lm_session::{GenerateParams, SessionConfig, testing};
///
/// // In a program: `Engine::load(&ModelFolder::open("path")?, ..)`.
/// let engine = testing::scripted_engine(["Hello!"]);
/// let mut session = engine.session(SessionConfig::default())?;
/// session.prefill(&engine.tokenizer().encode("Say hello.")?)?;
/// let (text, finished) = session.generate(GenerateParams::default()).into_text()?;
/// assert_eq!(text, "Hello!");
/// assert_eq!(finished.reason, lm_session::FinishReason::EndToken);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    commands: Sender<Command>,
    admission: Admission,
    activity: Arc<ActivityGauge>,
    tasks: TaskCount,
    worker: Mutex<Option<JoinHandle<()>>>,
    /// True since the start of the shutdown.
    stopped: AtomicBool,
    sessions_opened: AtomicU64,
    tokenizer: Arc<Tokenizer>,
    info: ModelInfo,
    chat_template: Option<ChatTemplateSource>,
    generation_config: GenerationConfig,
    embedding: Arc<EmbeddingConfig>,
    cross_encoder: CrossEncoderConfig,
    name: String,
    context_tokens: usize,
    speculation: Speculation,
    /// Created when the first grammar is compiled.
    compiler: Mutex<Option<GrammarCompiler>>,
    /// Created for the first constraint.
    closing: OnceLock<Arc<ClosingTokens>>,
    recorder: Mutex<Option<Recorder>>,
    fingerprint: Fingerprint,
    adapters: EngineAdapters,
    derived: DerivedValues,
    media: EngineMedia,
}

impl Engine {
    /// Starts an engine on a loaded model.
    ///
    /// # Errors
    /// [`Error::InvalidSettings`]; [`Error::Model`] when the device cannot hold the KV pool;
    /// [`Error::WorkerStart`].
    pub fn new(loaded: LoadedModel, settings: EngineSettings) -> Result<Self> {
        Self::start(loaded, None, settings)
    }

    /// Starts an engine whose model can be loaded again from `source`.
    pub(crate) fn start(
        loaded: LoadedModel,
        source: Option<ModelSource>,
        settings: EngineSettings,
    ) -> Result<Self> {
        let media = EngineMedia::new(&loaded, &settings)?;
        let LoadedModel {
            model,
            tokenizer,
            chat_template,
            generation_config,
            embedding,
            cross_encoder,
            name,
            ..
        } = loaded.clone();
        let (adapters, loaded_adapters) = EngineAdapters::new(&loaded);
        let source = source.map(ModelSource::without_adapters);
        let info = model.info().clone();
        settings.draft_model.as_ref().map_or(Ok(()), |draft| draft.check(&tokenizer))?;
        let capacity = Capacity::new(&settings, info.context_len, model.cache_bytes_per_page())?;
        let fingerprint = Fingerprint::new(&*model, &loaded_adapters);
        prefetch::settle(&*model);
        drop(model);
        if capacity.context_tokens < settings.max_context.unwrap_or(info.context_len) {
            tracing::info!(
                context_tokens = capacity.context_tokens,
                model_tokens = info.context_len,
                "the KV pool shortens the context"
            );
        }
        let (commands, received) = mpsc::channel();
        let (admission, speculation) = (Admission::new(&settings), settings.speculation);
        let residency = Residency::new(loaded, source, settings, commands.clone())?;
        let activity = Arc::new(ActivityGauge::default());
        residency.publish(&activity);
        let published = activity.clone();
        let worker = thread::Builder::new()
            .name("lm-engine".to_owned())
            .spawn(move || worker::run(residency, &received, &published))
            .map_err(Error::WorkerStart)?;
        let shared = Shared {
            commands,
            admission,
            activity,
            tasks: TaskCount::default(),
            worker: Mutex::new(Some(worker)),
            stopped: AtomicBool::new(false),
            sessions_opened: AtomicU64::new(0),
            tokenizer,
            info,
            chat_template,
            generation_config,
            embedding,
            cross_encoder,
            name,
            context_tokens: capacity.context_tokens,
            speculation,
            compiler: Mutex::default(),
            closing: OnceLock::new(),
            recorder: Mutex::default(),
            fingerprint,
            adapters,
            derived: DerivedValues::default(),
            media,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Loads the model of a folder and starts an engine on it. `progress` is called during the load.
    ///
    /// # Errors
    /// The errors of [`ModelFolder::load`] and [`Engine::new`].
    pub fn load(
        folder: &ModelFolder,
        options: &LoadOptions,
        settings: EngineSettings,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<Self> {
        let source = ModelSource { folder: folder.clone(), options: options.clone(), share: None };
        Self::start(folder.load(options, progress)?, Some(source), settings)
    }

    /// Rejects new requests, waits for the running and waiting ones, and ends the engine's threads. Later
    /// calls on this engine, its clones and its sessions return [`Error::EngineStopped`]. To end running
    /// requests early, cancel them before.
    ///
    /// ```
    /// # use lm_session::{Error, SessionConfig, testing};
    /// let engine = testing::scripted_engine(["Hello!"]);
    /// let mut session = engine.session(SessionConfig::default())?;
    /// engine.shutdown();
    /// assert!(matches!(session.prefill(&[1]), Err(Error::EngineStopped)));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn shutdown(&self) {
        self.shared.shutdown();
    }

    /// Returns true if both are handles to one engine.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns true if [`Engine::shutdown`] was called: every request fails with [`Error::EngineStopped`].
    pub fn is_stopped(&self) -> bool {
        self.shared.stopped.load(Ordering::Relaxed)
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.shared.tokenizer
    }

    /// Properties of the model.
    pub fn model_info(&self) -> &ModelInfo {
        &self.shared.info
    }

    /// The model's chat template, if its folder has one.
    pub fn chat_template(&self) -> Option<&ChatTemplateSource> {
        self.shared.chat_template.as_ref()
    }

    /// The model's recommended generation settings; see [`crate::SamplerParams::from_generation_config`].
    pub fn generation_config(&self) -> &GenerationConfig {
        &self.shared.generation_config
    }

    /// Computation of the model's embeddings, of the files of sentence-transformers in its folder.
    pub fn embedding_config(&self) -> &Arc<EmbeddingConfig> {
        &self.shared.embedding
    }

    /// Settings of the model as a cross-encoder, of the files in its folder.
    pub fn cross_encoder_config(&self) -> CrossEncoderConfig {
        self.shared.cross_encoder
    }

    /// Checks that the model generates text.
    ///
    /// # Errors
    /// [`Error::NoGeneration`] for a model that gives embeddings or labels.
    pub fn check_generation(&self) -> Result<()> {
        self.check_task(None)
    }

    /// Checks that the model can run a request whose prompt has this output.
    ///
    /// # Errors
    /// [`Error::NoGeneration`] for logits and tokens of a model that gives embeddings or labels.
    pub(crate) fn check_task(&self, prompt: Option<&PromptRows>) -> Result<()> {
        let ModelInfo { output, architecture, .. } = self.model_info();
        if *output == ModelOutput::Tokens || prompt.is_some_and(PromptRows::is_pooled) {
            return Ok(());
        }
        Err(Error::NoGeneration { architecture: architecture.clone(), output: *output })
    }

    /// Name of the model: its folder's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Maximum number of tokens of one session, prompt and output together.
    pub fn context_tokens(&self) -> usize {
        self.shared.context_tokens
    }

    /// Speculation of generations that do not set their own.
    pub(crate) fn speculation(&self) -> Speculation {
        self.shared.speculation
    }

    /// Fingerprint of the loaded model: its architecture, sizes, weight and cache formats, tokenizer, and a
    /// sample of its embeddings, in hexadecimal.
    pub fn fingerprint(&self) -> &str {
        self.shared.fingerprint.with_tokenizer(self.tokenizer())
    }

    /// Checks that saved data belong to this model.
    pub(crate) fn check_fingerprint(&self, found: &str) -> Result<()> {
        let expected = self.fingerprint();
        if found == expected {
            return Ok(());
        }
        Err(Error::ForeignCache { expected: expected.to_owned(), found: found.to_owned() })
    }

    /// Returns the value of type `T` that a layer above derives from the model, such as its compiled chat
    /// templates. The first call for each type creates it; all clones of the engine share it.
    ///
    /// ```
    /// # let engine = lm_session::testing::scripted_engine(["Hello!"]);
    /// struct Shout(String);
    /// let name = engine.derived(|| Ok::<_, lm_session::Error>(Shout(engine.name().to_uppercase())))?;
    /// assert_eq!(name.0, "FAKE");
    /// # Ok::<(), lm_session::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of `create`; the next call tries again.
    pub fn derived<T, E>(&self, create: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E>
    where
        T: Any + Send + Sync,
    {
        self.shared.derived.get_or_create(create)
    }

    /// Returns the running and waiting requests, without waiting for the engine's step.
    ///
    /// ```
    /// # let engine = lm_session::testing::scripted_engine(["Hello!"]);
    /// let activity = engine.activity();
    /// assert_eq!((activity.running_requests, activity.waiting_requests), (0, 0));
    /// assert_eq!(activity.free_pages, activity.total_pages);
    /// ```
    pub fn activity(&self) -> EngineActivity {
        self.shared.activity.read(self.shared.admission.waiting())
    }

    /// Returns the state of the KV pool, after all earlier commands.
    ///
    /// # Errors
    /// [`Error::EngineStopped`].
    pub fn cache_stats(&self) -> Result<CacheStats> {
        let (answer, stats) = mpsc::channel();
        self.send(Command::CacheStats(answer))?;
        stats.recv().map_err(|_| Error::EngineStopped)
    }

    pub(crate) fn send(&self, command: Command) -> Result<()> {
        self.shared.commands.send(command).map_err(|_| Error::EngineStopped)
    }

    /// Sends a request to the worker: the only entry for prefills and generations.
    ///
    /// # Errors
    /// [`Error::Busy`], [`Error::EngineStopped`].
    pub(crate) fn submit(&self, mut request: Request) -> Result<()> {
        if !request.limits.continues {
            request.waiting = Some(self.shared.admission.wait(request.size())?);
        }
        // Held until the request is sent: unloading its adapter later waits for the request.
        let registry = self.adapter_registry();
        request.low_ranks = request.adapter.map(|adapter| registry.get(adapter)).transpose()?;
        self.send(Command::Run(request))
    }

    pub(crate) fn next_session_id(&self) -> SessionId {
        SessionId(self.shared.sessions_opened.fetch_add(1, Ordering::Relaxed))
    }

    /// End-of-sequence ids of this model.
    pub(crate) fn end_ids(&self) -> impl Iterator<Item = TokenId> {
        let advised = &self.shared.generation_config.eos_token_ids;
        self.shared.tokenizer.end_ids().iter().chain(advised).copied()
    }
}

impl Shared {
    /// Ends the worker and waits for it, except on the engine's own threads.
    fn shutdown(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        drop(self.commands.send(Command::Shutdown)); // It may have ended already.
        if is_engine_thread() {
            return;
        }
        // Other callers wait for the lock.
        let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(worker) = worker.take() {
            drop(worker.join()); // The worker catches its panics.
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("name", &self.name())
            .field("context_tokens", &self.context_tokens())
            .finish_non_exhaustive()
    }
}
