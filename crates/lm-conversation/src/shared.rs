//! State that a conversation shares with its running turn.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lm_session::{CancelHandle, Session};
use lm_template::Message;

/// History and session of a conversation. Clones share them; `turn` is the number of the turn that holds the clone.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    state: Arc<Mutex<State>>,
    /// Number of the running turn, 0 if there is none: a turn that has ended takes no lock.
    live: Arc<AtomicU64>,
    turn: u64,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) session: Session,
    pub(crate) history: Vec<Message>,
    /// Number of the newest turn, and its handle while it runs.
    turn: u64,
    running: Option<CancelHandle>,
    live: Arc<AtomicU64>,
}

impl Shared {
    pub(crate) fn new(session: Session) -> Self {
        Self::with_history(session, Vec::new())
    }

    pub(crate) fn with_history(session: Session, history: Vec<Message>) -> Self {
        let live = Arc::new(AtomicU64::new(0));
        let state = State { session, history, turn: 0, running: None, live: live.clone() };
        Self { state: Arc::new(Mutex::new(state)), live, turn: 0 }
    }

    /// Locks the state.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the share of a new turn that `cancel` cancels.
    pub(crate) fn begin(&self, cancel: CancelHandle) -> Self {
        let mut state = self.lock();
        state.turn += 1;
        state.running = Some(cancel);
        self.live.store(state.turn, Ordering::Release);
        Self { state: self.state.clone(), live: self.live.clone(), turn: state.turn }
    }

    /// Locks the state; `None` if this turn has ended or another one has begun.
    pub(crate) fn lock_turn(&self) -> Option<MutexGuard<'_, State>> {
        if self.live.load(Ordering::Acquire) != self.turn {
            return None;
        }
        let state = self.lock();
        (state.turn == self.turn && state.running.is_some()).then_some(state)
    }
}

impl State {
    /// Cancels the running turn, which then leaves no trace.
    pub(crate) fn end_turn(&mut self) {
        self.live.store(0, Ordering::Release);
        if let Some(cancel) = self.running.take() {
            cancel.cancel();
        }
    }

    /// Adds the messages of the running turn to the history, and ends the turn.
    pub(crate) fn complete(&mut self, messages: Vec<Message>) {
        self.history.extend(messages);
        self.live.store(0, Ordering::Release);
        self.running = None;
    }
}
