//! Activity of an engine: counts that its worker publishes, read without waiting for a step.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Activity of an engine, from [`Engine::activity`](crate::Engine::activity). The waiting requests are
/// counted later than the others: the sum may be off by a request that moves between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineActivity {
    /// Requests that wait for a place in the batch, including those of the current step.
    pub waiting_requests: usize,
    /// Requests in the batch at the start or the end of the current step.
    pub running_requests: usize,
    /// Pages of the KV pool; 0 while the model is not in memory. See [`CacheStats`](crate::CacheStats).
    pub total_pages: usize,
    /// Pages without a session.
    pub free_pages: usize,
    /// Images and audio that were encoded since the engine started.
    pub encoded_media: u64,
    /// Bytes of the encoded media in the cache
    /// ([`EngineSettings::media_cache_bytes`](crate::EngineSettings::media_cache_bytes)).
    pub media_cache_bytes: usize,
    /// Time after which the idle model is released; `None` if it stays loaded. See
    /// [`Engine::set_keep_alive`](crate::Engine::set_keep_alive).
    pub keep_alive: Option<Duration>,
    /// Time at which the model is released if it stays idle; `None` while it is in use, or if it stays
    /// loaded.
    pub unloads_at: Option<Instant>,
}

/// Activity that the worker publishes, without the waiting requests.
#[derive(Debug, Default)]
pub(crate) struct ActivityGauge(Mutex<EngineActivity>);

impl ActivityGauge {
    pub fn publish(&self, activity: EngineActivity) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = activity;
    }

    pub fn read(&self, waiting_requests: usize) -> EngineActivity {
        let published = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        EngineActivity { waiting_requests, ..published }
    }
}
