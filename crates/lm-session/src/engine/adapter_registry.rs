//! LoRA adapters in memory: loaded with the model or while it runs.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lm_model::{Adapter, AdapterInfo, AdapterLoader, LoadedModel};

use crate::error::{Error, Result};
use crate::ids::AdapterId;

/// Adapters of an engine.
pub(crate) struct EngineAdapters {
    registry: Mutex<AdapterRegistry>,
    /// Adapter of sessions with audio.
    audio: Option<AdapterId>,
}

impl EngineAdapters {
    /// Registers the adapters that were loaded with the model; also returns them by id.
    pub fn new(loaded: &LoadedModel) -> (Self, Vec<Adapter>) {
        let mut adapters = loaded.adapters.clone();
        let audio = loaded.audio_adapter.is_some().then_some(AdapterId(adapters.len() as u32));
        adapters.extend(loaded.audio_adapter.clone());
        let registry = AdapterRegistry::new(loaded.adapter_loader.clone(), adapters.clone());
        (Self { registry: Mutex::new(registry), audio }, adapters)
    }

    /// Locks the registry.
    pub fn registry(&self) -> MutexGuard<'_, AdapterRegistry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adapter of sessions with audio.
    pub fn audio(&self) -> Option<AdapterId> {
        self.audio
    }
}

/// Adapters in memory.
#[derive(Debug)]
pub(crate) struct AdapterRegistry {
    loader: Option<AdapterLoader>,
    loaded: BTreeMap<AdapterId, Adapter>,
    /// Number of adapters loaded so far, which is the next id.
    count: u32,
}

impl AdapterRegistry {
    /// Creates a registry of the adapters loaded with the model.
    pub fn new(loader: Option<AdapterLoader>, adapters: Vec<Adapter>) -> Self {
        let mut registry = Self { loader, loaded: BTreeMap::new(), count: 0 };
        for adapter in adapters {
            registry.add(adapter);
        }
        registry
    }

    /// Adds an adapter under the next id.
    pub fn add(&mut self, adapter: Adapter) -> AdapterId {
        let id = AdapterId(self.count);
        self.count += 1;
        self.loaded.insert(id, adapter);
        id
    }

    /// Returns a loaded adapter.
    ///
    /// # Errors
    /// [`Error::UnknownAdapter`], [`Error::AdapterUnloaded`].
    pub fn get(&self, id: AdapterId) -> Result<Adapter> {
        self.loaded.get(&id).cloned().ok_or_else(|| self.missing(id))
    }

    /// Removes a loaded adapter.
    ///
    /// # Errors
    /// The errors of [`AdapterRegistry::get`].
    pub fn remove(&mut self, id: AdapterId) -> Result<Adapter> {
        self.loaded.remove(&id).ok_or_else(|| self.missing(id))
    }

    fn missing(&self, id: AdapterId) -> Error {
        let AdapterId(adapter) = id;
        if adapter < self.count {
            Error::AdapterUnloaded { adapter }
        } else {
            Error::UnknownAdapter { adapter, loaded: self.count as usize }
        }
    }

    /// Loader of further adapters, if the model's files are known.
    pub fn loader(&self) -> Option<AdapterLoader> {
        self.loader.clone()
    }

    /// Adapters in memory, by id.
    pub fn infos(&self) -> Vec<(AdapterId, AdapterInfo)> {
        self.loaded.iter().map(|(&id, adapter)| (id, adapter.info().clone())).collect()
    }
}
