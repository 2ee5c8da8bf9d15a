//! LoRA adapters in memory: loaded with the model or while it runs.

use std::collections::BTreeMap;

use lm_model::{Adapter, AdapterInfo, AdapterLoader};

use crate::error::{Error, Result};
use crate::ids::AdapterId;

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
