//! Activity of an engine: counts that its worker publishes, read without waiting for a step.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::CacheStats;

/// Activity of an engine, made by [`Engine::activity`](crate::Engine::activity). The counts are read one after another while the engine works:
/// their sum may be off by a request that moves between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineActivity {
    /// Requests that wait for a place in the batch, those of a step that runs included.
    pub waiting_requests: usize,
    /// Requests in the batch, as of the beginning or the end of the current step.
    pub running_requests: usize,
    /// Pages of the KV pool; 0 while the model is not in memory. See [`CacheStats`].
    pub total_pages: usize,
    /// Pages that no session holds.
    pub free_pages: usize,
}

/// Counts that the worker publishes.
#[derive(Debug, Default)]
pub(crate) struct ActivityGauge {
    running_requests: AtomicUsize,
    total_pages: AtomicUsize,
    free_pages: AtomicUsize,
}

impl ActivityGauge {
    pub fn publish(&self, running_requests: usize, cache: CacheStats) {
        self.running_requests.store(running_requests, Ordering::Relaxed);
        self.total_pages.store(cache.total_pages, Ordering::Relaxed);
        self.free_pages.store(cache.free_pages, Ordering::Relaxed);
    }

    pub fn read(&self, waiting_requests: usize) -> EngineActivity {
        EngineActivity {
            waiting_requests,
            running_requests: self.running_requests.load(Ordering::Relaxed),
            total_pages: self.total_pages.load(Ordering::Relaxed),
            free_pages: self.free_pages.load(Ordering::Relaxed),
        }
    }
}
