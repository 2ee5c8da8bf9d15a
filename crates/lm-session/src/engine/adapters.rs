//! LoRA adapters of an engine: those loaded with its model, and those loaded while it runs.

use std::path::Path;
use std::sync::{MutexGuard, mpsc};

use lm_model::AdapterInfo;

use super::Engine;
use super::adapter_registry::AdapterRegistry;
use crate::error::{Error, Result};
use crate::ids::AdapterId;
use crate::scheduler::Command;

impl Engine {
    /// Loads a LoRA adapter from a folder in PEFT's format, on the calling thread, while the sessions
    /// continue to generate. Sessions of [`SessionConfig::adapter`](crate::SessionConfig::adapter) use it. It
    /// stays in memory until [`Engine::unload_adapter`], also while the model is unloaded.
    ///
    /// ```
    /// use lm_session::{Engine, EngineSettings, Error, LoadOptions, ModelFolder, SessionConfig};
    ///
    /// # let testdata = |path: &str| format!("{}/../../testdata/{path}", env!("CARGO_MANIFEST_DIR"));
    /// # let (model, adapter) = (testdata("models/llama-tiny"), testdata("adapters/llama-tiny-all"));
    /// let (folder, settings) = (ModelFolder::open(model)?, EngineSettings::default());
    /// let engine = Engine::load(&folder, &LoadOptions::default(), settings, &mut |_| {})?;
    /// let id = engine.load_adapter(adapter)?;
    /// let mut session = engine.session(SessionConfig { adapter: Some(id), ..SessionConfig::default() })?;
    /// session.prefill(&[1, 2, 3])?;
    /// engine.unload_adapter(id)?;
    /// assert!(matches!(session.prefill(&[4]), Err(Error::AdapterUnloaded { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Model`] when the folder is not an adapter, or one of another model; [`Error::NoAdapters`].
    pub fn load_adapter(&self, folder: impl AsRef<Path>) -> Result<AdapterId> {
        let loader = self.adapter_registry().loader();
        let loader = loader.ok_or_else(|| Error::NoAdapters { model: self.name().to_owned() })?;
        let adapter = loader.load(folder.as_ref())?;
        Ok(self.adapter_registry().add(adapter))
    }

    /// Unloads an adapter, loaded with the model or later. New requests with it are rejected with
    /// [`Error::AdapterUnloaded`]. Earlier requests finish with the adapter; the call waits for them, so
    /// cancel them first to end them early. Then the adapter's memory and its cached prefixes are released.
    ///
    /// Sessions that name the adapter keep their tokens, and reject every further request.
    ///
    /// # Errors
    /// [`Error::UnknownAdapter`], [`Error::AdapterUnloaded`], [`Error::EngineStopped`].
    pub fn unload_adapter(&self, id: AdapterId) -> Result<()> {
        let (answer, released) = mpsc::channel();
        {
            let mut registry = self.adapter_registry();
            registry.remove(id)?;
            // Under the lock, so that no request with the adapter follows this command.
            self.send(Command::DropAdapter { adapter: id, answer })?;
        }
        released.recv().map_err(|_| Error::EngineStopped)
    }

    /// Adapter for audio in the model's own folder
    /// ([`LoadedModel::audio_adapter`](crate::LoadedModel::audio_adapter)). Sessions without another adapter
    /// use it while they have audio clips; the first audio of a session requires its earlier tokens to run
    /// again.
    pub fn audio_adapter(&self) -> Option<AdapterId> {
        self.shared.adapters.audio()
    }

    pub(crate) fn adapter_registry(&self) -> MutexGuard<'_, AdapterRegistry> {
        self.shared.adapters.registry()
    }

    /// Adapters in memory, by id.
    pub fn adapters(&self) -> Vec<(AdapterId, AdapterInfo)> {
        self.adapter_registry().infos()
    }
}
