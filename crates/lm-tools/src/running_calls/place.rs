//! Threads and runtimes on which calls run.

use crate::execution::Spawner;
use crate::toolset::Entry;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use tracing::Instrument;

/// Place of a call's run.
#[derive(Clone)]
pub(super) enum Place {
    /// A separate thread, and the runtime for a future that the tool returns.
    Thread(Option<Spawner>),
    /// The runtime of asynchronous tools.
    Runtime(Spawner),
}

impl Place {
    /// The runtime for an asynchronous tool, if any, else a thread.
    pub fn of(entry: &Entry, runtime: Option<&Spawner>) -> Self {
        match runtime {
            Some(runtime) if entry.tool.is_async() => Self::Runtime(runtime.clone()),
            runtime => Self::Thread(runtime.cloned()),
        }
    }

    /// Runs a call's future, which sets its result even when dropped.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn launch<T: 'static>(
        &self,
        run: impl Future<Output = T> + Send + 'static,
        tool: &str,
    ) -> io::Result<()> {
        let span = tracing::info_span!("tool_call", tool);
        let run = async move { drop(run.await) }.instrument(span);
        match self {
            Self::Thread(_) => {
                let thread = thread::Builder::new().name("lm-tool".to_owned());
                thread.spawn(move || pollster::block_on(run))?;
            }
            Self::Runtime(spawn) => {
                if catch_unwind(AssertUnwindSafe(|| spawn(Box::pin(run)))).is_err() {
                    tracing::error!(tool, "the spawner panicked");
                }
            }
        }
        Ok(())
    }
}
