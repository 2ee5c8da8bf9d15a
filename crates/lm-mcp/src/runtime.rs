//! The runtime of connections: the caller's, or a small internal one.

use crate::{Error, Result};
use std::future::Future;
use std::sync::mpsc;
use tokio::runtime::{Builder, Handle, Runtime};

/// A runtime with one worker thread that ends in the background when it is dropped, or a handle to the
/// caller's.
#[derive(Debug)]
pub(crate) struct AnyRuntime {
    owned: Option<Runtime>,
    handle: Handle,
}

impl AnyRuntime {
    /// Starts a runtime.
    pub fn start() -> Result<Self> {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("lm-mcp").enable_all().build();
        let runtime = runtime.map_err(Error::Runtime)?;
        let handle = runtime.handle().clone();
        Ok(Self { owned: Some(runtime), handle })
    }

    pub fn of_caller(handle: Handle) -> Self {
        Self { owned: None, handle }
    }

    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Returns true if this runtime ends when it is dropped.
    pub fn is_owned(&self) -> bool {
        self.owned.is_some()
    }

    /// Runs a future on the runtime and waits for it on this thread. `None` if it panicked, or the runtime
    /// ended.
    pub fn wait<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Option<T> {
        // Not `block_on`, which panics on a thread of a runtime.
        let (result, received) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            let _ = result.send(future.await); // The receiver waits.
        });
        received.recv().ok()
    }
}

impl Drop for AnyRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.owned.take() {
            runtime.shutdown_background(); // Waiting would panic on a thread of a runtime.
        }
    }
}
