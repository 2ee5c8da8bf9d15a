//! Several models under one memory budget, loaded on demand.

use std::collections::HashSet;
use std::fmt;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use lm_model::{LoadOptions, LoadProgress, ModelFolder};

use crate::engine::Engine;
use crate::engine::residency::ModelSource;
use crate::error::{Error, Result};
use crate::memory::{MemoryPlan, MemoryRequest};
use crate::params::EngineSettings;

/// Interval of checks during a load whether a model has unloaded itself.
const UNLOAD_POLL: Duration = Duration::from_millis(10);

/// Registry of models that share a memory budget: each is loaded on first use, and unloaded when another one
/// needs its memory, the least recently used first.
///
/// An unloaded model keeps its [`Engine`] and tokenizer: sessions and conversations on it stay valid, and
/// their next request loads the weights again and prefills the missing tokens. [`EngineSettings::keep_alive`]
/// unloads an idle model after a time. Models are loaded one at a time. Clones share the registry.
///
/// ```
/// use lm_session::{EngineSettings, LoadOptions, MemoryRequest, ModelFolder, Models, SessionConfig};
///
/// # let folder = |name: &str| ModelFolder::open(format!("{}/../../testdata/models/{name}", env!("CARGO_MANIFEST_DIR")));
/// let models = Models::new(300 << 20);
/// for name in ["llama-tiny", "qwen3-tiny"] {
///     let (options, settings) = (LoadOptions::default(), EngineSettings::default());
///     models.add(name, folder(name)?, &MemoryRequest::default(), options, settings)?; // Loads nothing.
/// }
/// let engine = models.engine("llama-tiny", &mut |progress| println!("{progress:?}"))?;
/// engine.session(SessionConfig::default())?.prefill(&[1, 2, 3])?;
/// let loaded: Vec<_> = models.list().into_iter().filter(|model| model.loaded).map(|model| model.name).collect();
/// assert_eq!(loaded, ["llama-tiny"]);
/// # Ok::<(), lm_session::Error>(())
/// ```
#[derive(Clone)]
pub struct Models {
    shared: Arc<Shared>,
}

struct Shared {
    budget_bytes: u64,
    /// Held during a load, so that a second load sees the memory left by the first. The worker of a loaded
    /// model never waits for it.
    loading: Mutex<()>,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    models: Vec<Entry>,
    /// Clock of `used`: number of uses so far.
    uses: u64,
}

struct Entry {
    name: String,
    source: ModelSource,
    settings: EngineSettings,
    plan: MemoryPlan,
    /// Created by the first load.
    engine: Option<Engine>,
    /// True while its memory counts.
    loaded: bool,
    used: u64,
}

/// State of a model in [`Models`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelState {
    /// Name in the registry.
    pub name: String,
    /// True while the weights and the KV pool are in memory.
    pub loaded: bool,
    /// Planned memory of the loaded model: weights, cache and overhead.
    pub needed_bytes: u64,
}

impl Models {
    /// Creates an empty registry; the loaded models together take at most `budget_bytes`, computed by
    /// [`MemoryPlan`].
    pub fn new(budget_bytes: u64) -> Self {
        let shared = Shared { budget_bytes, loading: Mutex::default(), entries: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Adds a model without loading it. Its context, cache and weight format are chosen for the whole budget,
    /// unless `request` sets them; `options` and `settings` give the rest.
    ///
    /// # Errors
    /// [`Error::DuplicateModel`]; [`Error::Model`] when the headers of the files cannot be read;
    /// [`Error::DoesNotFit`] when the model alone exceeds the budget; [`Error::InvalidSettings`].
    pub fn add(
        &self,
        name: &str,
        folder: ModelFolder,
        request: &MemoryRequest,
        options: LoadOptions,
        settings: EngineSettings,
    ) -> Result<()> {
        let plan = MemoryPlan::choose(&folder.footprint()?, request, self.shared.budget_bytes)?;
        let share = Some(MemoryShare { models: Arc::downgrade(&self.shared), name: name.to_owned() });
        let entry = Entry {
            name: name.to_owned(),
            source: ModelSource { folder, options: plan.load_options(options), share },
            settings: plan.engine_settings(settings),
            plan,
            engine: None,
            loaded: false,
            used: 0,
        };
        let mut entries = self.shared.entries();
        if entries.find(name).is_ok() {
            return Err(Error::DuplicateModel { name: name.to_owned() });
        }
        entries.models.push(entry);
        Ok(())
    }

    /// Returns the engine of a model. The first call loads it, as does the first call after
    /// [`Engine::shutdown`]; this may unload others; `progress` is called meanwhile, and must not use the
    /// registry or an unloaded model of it: loads wait for each other.
    ///
    /// # Errors
    /// [`Error::UnknownModel`]; [`Error::ModelsInUse`] when models with running requests leave too little
    /// memory; the errors of [`Engine::load`].
    pub fn engine(&self, name: &str, progress: &mut dyn FnMut(LoadProgress)) -> Result<Engine> {
        let (_loading, source, settings) = loop {
            let loading = self.shared.loading();
            let stopped = match self.shared.use_engine(name)? {
                Used::Engine(engine) if !engine.is_stopped() => return Ok(engine),
                Used::Engine(engine) => engine,
                Used::Source(files) => break (loading, files.0, files.1),
            };
            // Its requests may wait for a load. Until it has ended, its memory counts.
            drop(loading);
            stopped.shutdown();
            self.shared.forget(name, &stopped);
        };
        let reserved = self.shared.make_room(name)?;
        let loaded = source.folder.load(&source.options, progress)?;
        let engine = Engine::start(loaded, Some(source), settings)?;
        reserved.keep();
        self.shared.entries().find(name)?.engine = Some(engine.clone());
        Ok(engine)
    }

    /// States of all models, in order of addition.
    pub fn list(&self) -> Vec<ModelState> {
        let state = |entry: &Entry| ModelState {
            name: entry.name.clone(),
            loaded: entry.loaded,
            needed_bytes: entry.plan.needed_bytes,
        };
        self.shared.entries().models.iter().map(state).collect()
    }
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Models")
            .field("budget_bytes", &self.shared.budget_bytes)
            .field("models", &self.list())
            .finish()
    }
}

impl Entries {
    fn find(&mut self, name: &str) -> Result<&mut Entry> {
        let unknown = || Error::UnknownModel { name: name.to_owned() };
        self.models.iter_mut().find(|entry| entry.name == name).ok_or_else(unknown)
    }
}

/// Engine of a model, or its files if it has no engine.
enum Used {
    Engine(Engine),
    Source(Box<(ModelSource, EngineSettings)>),
}

impl Shared {
    /// Records the use of a model, and returns its engine, or its files.
    fn use_engine(&self, name: &str) -> Result<Used> {
        let mut entries = self.entries();
        entries.uses += 1;
        let uses = entries.uses;
        let entry = entries.find(name)?;
        entry.used = uses;
        Ok(match &entry.engine {
            Some(engine) => Used::Engine(engine.clone()),
            None => Used::Source(Box::new((entry.source.clone(), entry.settings.clone()))),
        })
    }

    /// Drops the handle to an engine that has ended, unless it was replaced.
    fn forget(&self, name: &str, ended: &Engine) {
        if let Ok(entry) = self.entries().find(name) {
            entry.engine.take_if(|engine| engine.is(ended));
        }
    }

    /// Unloads idle models until the budget has room for `name`, and counts it as loaded. The caller holds
    /// `loading`.
    fn make_room<'a>(&'a self, name: &'a str) -> Result<Reservation<'a>> {
        let mut in_use = HashSet::new();
        loop {
            let victim = {
                let mut entries = self.entries();
                let needed_bytes = entries.find(name)?.plan.needed_bytes;
                let others = || entries.models.iter().filter(|entry| entry.loaded && entry.name != name);
                let used: u64 = others().map(|entry| entry.plan.needed_bytes).sum();
                if used.saturating_add(needed_bytes) <= self.budget_bytes {
                    entries.find(name)?.loaded = true;
                    return Ok(Reservation { shared: self, name, kept: false });
                }
                let idle = others().filter(|entry| !in_use.contains(&entry.name));
                let Some(oldest) = idle.min_by_key(|entry| entry.used) else {
                    let left_bytes = self.budget_bytes.saturating_sub(used);
                    let name = name.to_owned();
                    return Err(Error::ModelsInUse { name, needed_bytes, left_bytes });
                };
                (oldest.name.clone(), oldest.engine.clone())
            };
            let (victim, engine) = victim;
            if !engine.is_some_and(|engine| self.unload(&victim, &engine)) {
                in_use.insert(victim);
            }
        }
    }

    /// Asks a loaded model's worker, which answers between two steps, to release its memory. Returns true if
    /// it is released.
    fn unload(&self, name: &str, engine: &Engine) -> bool {
        let Ok(answer) = engine.begin_unload() else { return true };
        loop {
            match answer.recv_timeout(UNLOAD_POLL) {
                Ok(released) => return released,
                Err(RecvTimeoutError::Disconnected) => return true, // The worker has ended, and released its memory.
                // A model that unloaded itself meanwhile may wait for the registry to load it again, and not
                // answer before.
                Err(RecvTimeoutError::Timeout) if !self.is_loaded(name) => return true,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn is_loaded(&self, name: &str) -> bool {
        self.entries().find(name).is_ok_and(|entry| entry.loaded)
    }

    fn set_loaded(&self, name: &str, loaded: bool) {
        if let Ok(entry) = self.entries().find(name) {
            entry.loaded = loaded;
        }
    }

    fn loading(&self) -> MutexGuard<'_, ()> {
        self.loading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory that counts for a model during its load, and afterwards while it is loaded.
struct Reservation<'a> {
    shared: &'a Shared,
    name: &'a str,
    kept: bool,
}

impl Reservation<'_> {
    fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.shared.set_loaded(self.name, false);
        }
    }
}

/// Place of an engine in a registry, which may be dropped.
#[derive(Clone, Debug)]
pub(crate) struct MemoryShare {
    models: Weak<Shared>,
    name: String,
}

impl MemoryShare {
    /// Calls `load` when the budget has room for the model.
    ///
    /// # Errors
    /// [`Error::ModelsInUse`], and the errors of `load`.
    pub fn load<T>(&self, load: impl FnOnce() -> Result<T>) -> Result<T> {
        let Some(shared) = self.models.upgrade() else { return load() };
        let _loading = shared.loading();
        let reserved = shared.make_room(&self.name)?;
        let loaded = load()?;
        reserved.keep();
        Ok(loaded)
    }

    /// Records that the model is unloaded.
    pub fn release(&self) {
        if let Some(shared) = self.models.upgrade() {
            shared.set_loaded(&self.name, false);
        }
    }

    /// Records the use of the model.
    pub fn touch(&self) {
        if let Some(shared) = self.models.upgrade() {
            let mut entries = shared.entries();
            entries.uses += 1;
            let uses = entries.uses;
            if let Ok(entry) = entries.find(&self.name) {
                entry.used = uses;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use lm_model::testing::HookedLm;

    use super::*;
    use crate::testing::{FakeLm, loaded, tokenizer};

    /// The worker of a model that unloaded itself does not answer while it waits for the load of another
    /// model to end.
    #[test]
    fn unloaded_model_is_not_waited_for() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/llama-tiny");
        let models = Models::new(300 << 20);
        let (options, settings) = (LoadOptions::default(), EngineSettings::default());
        let folder = ModelFolder::open(folder).unwrap();
        models.add("busy", folder, &MemoryRequest::default(), options, settings.clone()).unwrap();
        let (reach, reached) = channel();
        let (open, opened) = channel::<()>();
        let opened = Mutex::new(opened);
        let wait = move |_: &lm_model::Batch| {
            let _ = (reach.send(()), opened.lock().unwrap().recv());
            Ok(())
        };
        let inner = Arc::new(FakeLm::random(1, tokenizer().logits_width()));
        let engine = Engine::new(loaded(HookedLm::new(inner).before_pass(wait)), settings).unwrap();
        let mut session = engine.session(crate::SessionConfig::default()).unwrap();
        let request = session.submit(&[1, 2, 3], crate::GenerateParams::default()).unwrap();
        reached.recv().unwrap();
        let (shared, found) = (models.shared.clone(), engine.clone());
        let (answer, answered) = channel();
        std::thread::spawn(move || answer.send(shared.unload("busy", &found)));
        assert_eq!(answered.recv_timeout(Duration::from_secs(60)), Ok(true), "it is not loaded");
        drop(open);
        drop(request);
    }
}
