//! Models of a server, by name.

use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lm_api::{ChatEngine, ConversationConfig, Embeddings, KeepAlive, Reranker};
use lm_session::{Engine, MediaKind};

use crate::start_error::{Error, Result};

/// Loads a model.
type Load = dyn Fn() -> lm_session::Result<(Engine, ConversationConfig)> + Send + Sync;

/// A model to serve: its name and aliases, its engine, and the values of absent fields of requests.
#[derive(Clone)]
pub struct ServedModel {
    name: String,
    aliases: Vec<String>,
    created: u64,
    /// Kinds of media that it reads, as far as is known before it is loaded.
    media: Vec<MediaKind>,
    is_gguf: bool,
    /// Bytes of its files, if they are known.
    file_bytes: Option<u64>,
    /// Its engine, once it is loaded.
    engines: Arc<OnceLock<Engines>>,
    load: Arc<Load>,
}

/// Engine of a loaded model, and its request handler.
#[derive(Clone, Debug)]
pub(crate) struct Engines {
    pub engine: Engine,
    pub chat: ChatEngine,
    pub embeddings: Embeddings,
    pub reranker: Reranker,
    /// Time for which the idle model stays in memory, unless a request sets another one.
    keep_alive: Option<Duration>,
}

impl Engines {
    fn new((engine, config): (Engine, ConversationConfig)) -> Self {
        Self {
            embeddings: Embeddings::new(engine.clone(), config.session.adapter),
            reranker: Reranker::new(engine.clone(), config.session.adapter),
            chat: ChatEngine::new(engine.clone(), config),
            keep_alive: engine.activity().keep_alive,
            engine,
        }
    }

    /// Starts a request, after which the idle model stays in memory for this time, or else for the engine's
    /// own.
    ///
    /// # Errors
    /// Same errors as `begin`; when the engine has stopped.
    pub fn kept<T>(
        &self,
        time: Option<KeepAlive>,
        begin: impl FnOnce(&Self) -> lm_api::Result<T>,
    ) -> lm_api::Result<T> {
        // With a zero keep-alive the model is idle until the request has started.
        let unload = time.filter(|time| time.is_zero());
        self.keep(if unload.is_some() { None } else { time })?;
        let started = begin(self)?;
        unload.map_or(Ok(()), |time| self.keep(Some(time)))?;
        Ok(started)
    }

    /// Sets the time for which the idle model stays in memory, or else the engine's own.
    ///
    /// # Errors
    /// When the engine has stopped.
    pub fn keep(&self, time: Option<KeepAlive>) -> lm_api::Result<()> {
        let time = time.map_or(self.keep_alive, |KeepAlive(time)| time);
        Ok(self.engine.set_keep_alive(time).map_err(lm_conversation::Error::from)?)
    }
}

impl ServedModel {
    /// Creates a model of the engine's name.
    pub fn new(engine: Engine, config: ConversationConfig) -> Self {
        let name = engine.name().to_owned();
        let model = Self::on_demand(name, move || Ok((engine.clone(), config.clone())));
        // It cannot fail.
        let _ = model.engines();
        model
    }

    /// Creates a model that the first request loads, on a thread that may block; requests that arrive
    /// meanwhile call `load` as well, which returns the same engine to all ([`lm_session::Models::engine`]
    /// does). Its errors are answers to these requests.
    pub fn on_demand(
        name: impl Into<String>,
        load: impl Fn() -> lm_session::Result<(Engine, ConversationConfig)> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            aliases: Vec::new(),
            created: seconds_since_1970(),
            media: Vec::new(),
            is_gguf: false,
            file_bytes: None,
            engines: Arc::default(),
            load: Arc::new(load),
        }
    }

    /// Adds an alternative name under which requests can address the model.
    pub fn alias(mut self, name: impl Into<String>) -> Self {
        self.aliases.push(name.into());
        self
    }

    /// Sets the kinds of media that lists of models show until the model is loaded: those of
    /// `ModelFolder::reads_images` and `ModelFolder::reads_audio`. Default: none.
    pub fn media(mut self, kinds: impl IntoIterator<Item = MediaKind>) -> Self {
        self.media = kinds.into_iter().collect();
        self
    }

    /// Sets that the model comes from a GGUF file, which Ollama's API shows; otherwise its weights are
    /// safetensors.
    pub fn gguf(mut self, is_gguf: bool) -> Self {
        self.is_gguf = is_gguf;
        self
    }

    /// Sets the size of its files, which lists of models show until the model is loaded. Default: unknown.
    pub fn file_bytes(mut self, bytes: u64) -> Self {
        self.file_bytes = Some(bytes);
        self
    }

    /// Name of the model.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        [&self.name].into_iter().chain(&self.aliases).map(String::as_str)
    }

    /// Time of its start, in seconds since 1970.
    pub(crate) fn created(&self) -> u64 {
        self.created
    }

    /// Format of its files, in the word of Ollama's API.
    pub(crate) fn file_format(&self) -> &'static str {
        if self.is_gguf { "gguf" } else { "safetensors" }
    }

    /// Bytes of its weights in memory, or of its files; `None` if neither is known.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let weights = self.loaded().map(|loaded| loaded.engine.model_info().weight_bytes);
        weights.or(self.file_bytes)
    }

    /// Returns true if its weights are in memory.
    pub(crate) fn is_loaded(&self) -> bool {
        self.loaded().is_some_and(|loaded| loaded.engine.activity().total_pages > 0)
    }

    /// Returns true if the model reads media of this kind.
    pub(crate) fn reads(&self, kind: MediaKind) -> bool {
        self.loaded().map_or_else(|| self.media.contains(&kind), |loaded| loaded.engine.reads(kind))
    }

    /// Engine of the model; the first use loads it, which blocks.
    pub(crate) fn engines(&self) -> lm_api::Result<&Engines> {
        if let Some(loaded) = self.engines.get() {
            return Ok(loaded);
        }
        let loaded = (self.load)().map_err(lm_conversation::Error::from)?;
        Ok(self.engines.get_or_init(|| Engines::new(loaded)))
    }

    /// Engine of a model that was used.
    pub(crate) fn loaded(&self) -> Option<&Engines> {
        self.engines.get()
    }
}

impl fmt::Debug for ServedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, aliases, created, media, is_gguf, file_bytes, engines, load: _ } = self;
        f.debug_struct("ServedModel")
            .field("name", name)
            .field("aliases", aliases)
            .field("created", created)
            .field("media", media)
            .field("is_gguf", is_gguf)
            .field("file_bytes", file_bytes)
            .field("engines", engines)
            .finish_non_exhaustive()
    }
}

/// The models of a server: at least one, with distinct names.
#[derive(Debug)]
pub(crate) struct Models(RwLock<Arc<Vec<ServedModel>>>);

impl Models {
    pub fn new(models: Vec<ServedModel>) -> Result<Self> {
        check_names(&models)?;
        if models.is_empty() { Err(Error::NoModel) } else { Ok(Self(RwLock::new(Arc::new(models)))) }
    }

    /// [`lm_api::find_model`] among them.
    pub fn find(&self, name: Option<&str>) -> lm_api::Result<ServedModel> {
        lm_api::find_model(&self.all(), ServedModel::names, name).cloned()
    }

    /// The models of now.
    pub fn all(&self) -> Arc<Vec<ServedModel>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds a model.
    ///
    /// # Errors
    /// When there is one of its name.
    pub fn add(&self, model: ServedModel) -> Result<()> {
        let mut models = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut all = models.to_vec();
        all.push(model);
        check_names(&all)?;
        *models = Arc::new(all);
        Ok(())
    }
}

fn check_names(models: &[ServedModel]) -> Result<()> {
    let mut names: Vec<&str> = models.iter().flat_map(ServedModel::names).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::DuplicateModel { name: pair[0].to_owned() }),
        None => Ok(()),
    }
}

pub(crate) fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
