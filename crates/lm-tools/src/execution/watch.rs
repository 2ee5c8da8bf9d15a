//! Time limits and cancellation of running calls.

use super::answer::Answer;
use crate::tool_error::{ToolError, ToolErrorKind};
use async_channel::Sender as Notice;
use futures_util::future::{AbortHandle, abortable};
use lm_conversation::CancelHandle;
use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which running calls are checked.
const TICK: Duration = Duration::from_millis(10);

/// A running call with its limits.
#[derive(Debug)]
pub(crate) struct Watched {
    pub answer: Arc<Answer>,
    /// Handle of the turn.
    pub turn: CancelHandle,
    /// Handle of the call.
    pub call: CancelHandle,
    /// Closed when the call is cancelled or ends.
    pub notice: Notice<Infallible>,
    /// Ends the call's future.
    pub abort: AbortHandle,
    pub run: Arc<RunState>,
    pub deadline: Option<Instant>,
    pub cancel_grace: Option<Duration>,
    /// Time at which the turn was seen to be cancelled.
    pub cancelled: Option<Instant>,
}

/// State shared by a running call and the watcher.
#[derive(Debug, Default)]
pub(crate) struct RunState {
    /// End of a pause between attempts.
    pause: Mutex<Option<(Instant, AbortHandle)>>,
    /// Counts the run while it is abandoned.
    abandoned: OnceLock<Abandoned>,
}

impl RunState {
    /// Waits until a time, on the watcher's clock.
    pub async fn pause(&self, until: Instant) {
        let (pause, end) = abortable(pending::<()>());
        *self.lock() = Some((until, end));
        let _ended = pause.await;
    }

    fn end_pause(&self, now: Instant) {
        let ended = self.lock().take_if(|(until, _)| now >= *until);
        if let Some((_, end)) = ended {
            end.abort();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Instant, AbortHandle)>> {
        self.pause.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Count of one abandoned run.
#[derive(Debug)]
struct Abandoned(Arc<AtomicUsize>);

impl Abandoned {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count.clone())
    }
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Watcher of a toolset's running calls: a thread that starts with the first call, and ends when the toolset
/// is dropped and no call runs.
#[derive(Debug, Default)]
pub(crate) struct Watcher {
    calls: Mutex<Option<Sender<Watched>>>,
    /// Number of abandoned runs that have not ended.
    abandoned: Arc<AtomicUsize>,
}

impl Watcher {
    /// Abandons the call at its limits.
    ///
    /// # Errors
    /// When the watcher's thread cannot be started.
    pub(crate) fn watch(&self, call: Watched) -> io::Result<()> {
        let mut watcher = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = match watcher.take() {
            Some(calls) => calls,
            None => start(self.abandoned.clone())?,
        };
        let _ = calls.send(call); // The thread runs as long as the channel.
        *watcher = Some(calls);
        Ok(())
    }

    /// Number of abandoned runs that have not ended.
    pub(crate) fn abandoned(&self) -> &Arc<AtomicUsize> {
        &self.abandoned
    }
}

fn start(abandoned: Arc<AtomicUsize>) -> io::Result<Sender<Watched>> {
    let (calls, received) = channel();
    let thread = thread::Builder::new().name("lm-tools-watch".to_owned());
    thread.spawn(move || run(&received, &abandoned))?;
    Ok(calls)
}

fn run(received: &Receiver<Watched>, abandoned: &Arc<AtomicUsize>) {
    let mut calls: Vec<Watched> = Vec::new();
    loop {
        let next = match calls.is_empty() {
            true => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => received.recv_timeout(TICK),
        };
        match next {
            Ok(call) => calls.push(call),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if calls.is_empty() => return,
            Err(RecvTimeoutError::Disconnected) => thread::sleep(TICK),
        }
        let now = Instant::now();
        calls.retain_mut(|call| !call.ended(now, abandoned));
    }
}

impl Watched {
    /// Returns true if the call has ended, or is abandoned now.
    fn ended(&mut self, now: Instant, abandoned: &Arc<AtomicUsize>) -> bool {
        if self.answer.is_given() {
            self.cancel();
            return true;
        }
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            let elapsed = self.answer.started().elapsed().as_secs_f64();
            self.abandon(ToolErrorKind::TimedOut, &format!("no result after {elapsed:.1} s"), abandoned);
            return true;
        }
        if self.cancelled.is_none() && self.turn.is_cancelled() {
            self.cancelled = Some(now);
        }
        let graced = self.cancelled.zip(self.cancel_grace);
        if graced.is_some_and(|(cancelled, grace)| now - cancelled >= grace) {
            self.abandon(ToolErrorKind::Cancelled, "the turn was ended while the call ran", abandoned);
            return true;
        }
        if self.call.is_cancelled() {
            self.cancel();
        }
        self.guarded(|| self.run.end_pause(now));
        false
    }

    fn abandon(&self, kind: ToolErrorKind, reason: &str, abandoned: &Arc<AtomicUsize>) {
        let _ = self.run.abandoned.set(Abandoned::new(abandoned));
        self.call.cancel();
        let error = |attempts| match attempts {
            0 => ToolError::new(kind, format_args!("{reason}; it was not run")),
            _ => ToolError::new(kind, format_args!("{reason}; it may still take effect")),
        };
        // The result first: a future that ends without one sets another.
        self.guarded(|| self.answer.give_up(error));
        self.cancel();
        self.guarded(|| self.abort.abort());
    }

    /// Cancels the call's context, and wakes its waiters.
    fn cancel(&self) {
        self.call.cancel();
        self.guarded(|| {
            self.notice.close();
        });
    }

    /// Wakes a task, whose waker may panic.
    fn guarded(&self, wake: impl FnOnce()) {
        if catch_unwind(AssertUnwindSafe(wake)).is_err() {
            tracing::error!(tool = self.answer.name(), "the waker of a reader or of a call panicked");
        }
    }
}
