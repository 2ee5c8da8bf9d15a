//! Wait for an idle engine.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Engine;
use crate::error::{Error, Result};
use crate::scheduler::Command;

/// Number of the tasks of an engine; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskCount(Arc<(Mutex<usize>, Condvar)>);

/// Work of a layer above the engine that [`Engine::wait_idle`] waits for, such as a reply that is read in the
/// background. It ends when it is dropped.
#[derive(Debug)]
#[must_use = "a task that is dropped has ended"]
pub struct EngineTask(TaskCount);

impl TaskCount {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self) -> EngineTask {
        *self.lock() += 1;
        EngineTask(self.clone())
    }

    /// Waits until there is no task; false at the end of the wait.
    fn wait(&self, wait: Duration) -> bool {
        let waited = self.0.1.wait_timeout_while(self.lock(), wait, |tasks| *tasks > 0);
        *waited.unwrap_or_else(PoisonError::into_inner).0 == 0
    }
}

impl Drop for EngineTask {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
        self.0.0.1.notify_all();
    }
}

impl Engine {
    /// Starts a task that [`wait_idle`](Self::wait_idle) waits for.
    pub fn task(&self) -> EngineTask {
        self.shared.tasks.start()
    }

    /// Waits until the engine is idle: every request submitted so far has ended, and every
    /// [task](Self::task), such as a detached turn of a conversation. Requests of other threads during the
    /// wait prolong it. The engine can be used afterwards.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use lm_session::{Error, GenerateParams, SessionConfig, testing};
    ///
    /// let engine = testing::scripted_engine(["Hello!"]);
    /// let mut session = engine.session(SessionConfig::default())?;
    /// let generation = session.submit(&[1], GenerateParams::default())?;
    /// engine.wait_idle(Duration::from_secs(10))?;
    /// assert_eq!(engine.activity().running_requests, 0);
    /// assert_eq!(generation.into_text()?.0, "Hello!"); // Its events have waited.
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotIdle`] after `timeout`: the work continues. A task that waits for itself always gets it.
    /// [`Error::EngineStopped`].
    pub fn wait_idle(&self, timeout: Duration) -> Result<()> {
        let start = Instant::now();
        let left = || timeout.saturating_sub(start.elapsed());
        loop {
            let no_task = self.shared.tasks.wait(left());
            let (answer, idle) = mpsc::channel();
            self.send(Command::WaitIdle(answer))?;
            match idle.recv_timeout(left()) {
                // A task may have started, or have sent its next request, in between.
                Ok(()) if no_task && *self.shared.tasks.lock() == 0 => return Ok(()),
                Ok(()) if left().is_zero() => return Err(Error::NotIdle { timeout }),
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => return Err(Error::NotIdle { timeout }),
                Err(RecvTimeoutError::Disconnected) => return Err(Error::EngineStopped),
            }
        }
    }
}
