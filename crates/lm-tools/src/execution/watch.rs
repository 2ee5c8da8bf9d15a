//! Time limits and cancellation of running calls.

use super::answer::Answer;
use lm_conversation::CancelHandle;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which running calls are looked at.
const TICK: Duration = Duration::from_millis(10);

/// A running call with its limits.
#[derive(Debug)]
pub(crate) struct Watched {
    pub answer: Arc<Answer>,
    /// Handle of the turn.
    pub turn: CancelHandle,
    /// Handle of the call.
    pub call: CancelHandle,
    pub end: Arc<End>,
    pub deadline: Option<Instant>,
    pub cancel_grace: Option<Duration>,
    /// Time at which the turn was seen to be cancelled.
    pub cancelled: Option<Instant>,
}

/// Flag of an abandoned call, which wakes the task of its future.
#[derive(Debug, Default)]
pub(super) struct End {
    is_set: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl End {
    /// Returns true if the call is abandoned; wakes the task when it will be.
    pub fn poll(&self, context: &Context<'_>) -> bool {
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(context.waker().clone());
        self.is_set.load(Ordering::SeqCst)
    }

    fn set(&self) {
        self.is_set.store(true, Ordering::SeqCst);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if catch_unwind(AssertUnwindSafe(|| task.into_iter().for_each(Waker::wake))).is_err() {
            tracing::error!("the waker of an abandoned call panicked");
        }
    }
}

/// Watcher of a toolset's running calls: a thread that starts with the first call, and ends when the toolset is dropped and no call
/// runs.
#[derive(Debug, Default)]
pub(crate) struct Watcher {
    calls: OnceLock<Sender<Watched>>,
}

impl Watcher {
    /// Abandons the call at its limits.
    pub(super) fn watch(&self, call: Watched) {
        let watcher = self.calls.get_or_init(|| {
            let (calls, received) = channel();
            let thread = thread::Builder::new().name("lm-tools-watch".to_owned());
            if let Err(error) = thread.spawn(move || run(&received)) {
                tracing::error!(%error, "calls run without time limits");
            }
            calls
        });
        let _ = watcher.send(call); // Without the thread, which was reported.
    }
}

fn run(received: &Receiver<Watched>) {
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
        calls.retain_mut(|call| !call.ended(now));
    }
}

impl Watched {
    /// Returns true if the call has ended, or is abandoned now.
    fn ended(&mut self, now: Instant) -> bool {
        if self.answer.is_given() {
            return true;
        }
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            let elapsed = self.answer.started.elapsed().as_secs_f64();
            self.abandon(format!("no result after {elapsed:.1} s; it may still take effect"));
            return true;
        }
        if self.cancelled.is_none() && self.turn.is_cancelled() {
            self.cancelled = Some(now);
        }
        let graced = self.cancelled.zip(self.cancel_grace);
        let abandoned = graced.is_some_and(|(cancelled, grace)| now - cancelled >= grace);
        if abandoned {
            self.abandon("the turn was ended while the call ran; it may still take effect".to_owned());
        }
        abandoned
    }

    fn abandon(&self, message: String) {
        self.call.cancel();
        // First the result: a future that ends without one gives another.
        if catch_unwind(AssertUnwindSafe(|| self.answer.give(Err(message)))).is_err() {
            tracing::error!(tool = self.answer.name, "the waker of a reader of results panicked");
        }
        self.end.set();
    }
}
