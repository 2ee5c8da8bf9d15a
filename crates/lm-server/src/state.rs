//! State that requests share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lm_api::{ApiError, CancelHandle, ResponseStore};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::background::Background;
use crate::config::ServerConfig;
use crate::metrics::Metrics;
use crate::models::{Models, ServedModel};
use crate::rendering::Renderings;

/// State of a server.
#[derive(Debug)]
pub(crate) struct App {
    pub models: Models,
    pub config: ServerConfig,
    pub metrics: Metrics,
    /// Responses that later requests continue.
    pub responses: ResponseStore,
    /// Responses in the background.
    pub background: Background,
    /// Texts that the page shows while they grow.
    pub renderings: Renderings,
    /// Cancels all requests.
    pub cancel: CancelHandle,
    /// Places for requests in preparation.
    preparing: Arc<Semaphore>,
    is_ending: watch::Sender<bool>,
}

/// Shared [`App`].
pub(crate) type SharedApp = Arc<App>;

impl App {
    pub fn new(models: Models, config: ServerConfig) -> Self {
        let preparing = Arc::new(Semaphore::new(config.limits.preparing));
        Self {
            metrics: Metrics::new(&models),
            models,
            config,
            responses: ResponseStore::default(),
            background: Background::default(),
            renderings: Renderings::default(),
            cancel: CancelHandle::new(),
            preparing,
            is_ending: watch::Sender::new(false),
        }
    }

    /// Returns true if the server accepts requests.
    pub fn is_ready(&self) -> bool {
        !self.is_ending() && self.is_healthy()
    }

    /// Returns true if a shutdown has started.
    pub fn is_ending(&self) -> bool {
        *self.is_ending.borrow()
    }

    /// Waits for the begin of a shutdown.
    pub async fn ending(&self) {
        // The sender lives as long as this.
        let _ = self.is_ending.subscribe().wait_for(|ending| *ending).await;
    }

    /// Returns true if no engine has stopped.
    pub fn is_healthy(&self) -> bool {
        self.models.all().iter().filter_map(ServedModel::loaded).all(|loaded| !loaded.engine.is_stopped())
    }

    /// Ends the readiness.
    pub fn begin_shutdown(&self) {
        self.is_ending.send_replace(true);
    }

    /// Deadline of a request that arrives now.
    pub fn deadline(&self) -> Option<Instant> {
        Instant::now().checked_add(self.config.limits.request_time)
    }

    /// Acquires a slot for work outside of the engines, until it is dropped.
    ///
    /// # Errors
    /// 429 when all are taken.
    pub fn place(&self) -> lm_api::Result<OwnedSemaphorePermit> {
        self.preparing.clone().try_acquire_owned().map_err(|_| {
            let message = format!("{} requests are in preparation", self.config.limits.preparing);
            ApiError::overloaded(message, Duration::from_secs(1))
        })
    }

    /// Runs blocking work on its own thread.
    ///
    /// # Errors
    /// 429 when too many requests are in preparation; 500 when the work panics; the errors of the work.
    pub async fn prepare<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> lm_api::Result<T> + Send + 'static,
    ) -> lm_api::Result<T> {
        let place = self.place()?;
        let task = tokio::task::spawn_blocking(move || {
            let _place = place;
            work()
        });
        task.await.unwrap_or_else(|_| Err(ApiError::server("the request ended in an internal error")))
    }
}

/// Cancels a request when dropped, as on a disconnect.
#[derive(Debug)]
pub(crate) struct CancelOnDrop(pub CancelHandle);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
