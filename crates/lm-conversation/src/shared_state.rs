//! State that a conversation shares with its running turn.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lm_session::{CancelHandle, Session};
use lm_template::Message;

use crate::overflow::DroppedHistory;
use crate::turn_prompt::{CutReply, HistoryChange};

/// History and session of a conversation. Clones share them; `turn` is the number of the turn that holds the
/// clone.
#[derive(Clone, Debug)]
pub(crate) struct SharedState {
    state: Arc<Mutex<State>>,
    /// Number of the running turn, 0 without one: an ended turn takes no lock.
    live: Arc<AtomicU64>,
    turn: u64,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) session: Session,
    pub(crate) history: Vec<Message>,
    /// Number of leading history messages omitted from prompts.
    pub(crate) dropped: usize,
    /// The last reply, if it was cut off.
    pub(crate) open: Option<CutReply>,
    /// Number of the newest turn, and its handle while it runs.
    turn: u64,
    running: Option<CancelHandle>,
    live: Arc<AtomicU64>,
}

impl SharedState {
    pub(crate) fn new(session: Session) -> Self {
        let live = Arc::new(AtomicU64::new(0));
        let state = State {
            session,
            history: Vec::new(),
            dropped: 0,
            open: None,
            turn: 0,
            running: None,
            live: live.clone(),
        };
        Self { state: Arc::new(Mutex::new(state)), live, turn: 0 }
    }

    /// Creates a copy of the state without the running turn.
    ///
    /// # Errors
    /// When the engine has stopped.
    pub(crate) fn fork(&self) -> lm_session::Result<Self> {
        let state = self.lock();
        let fork = Self::new(state.session.fork()?);
        let mut copy = fork.lock();
        (copy.history, copy.dropped, copy.open) = (state.history.clone(), state.dropped, state.open.clone());
        drop(copy);
        Ok(fork)
    }

    /// Locks the state.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state handle of a new turn, cancelled by `cancel`.
    pub(crate) fn begin(&self, cancel: CancelHandle) -> Self {
        let mut state = self.lock();
        state.turn += 1;
        state.running = Some(cancel);
        self.live.store(state.turn, Ordering::Release);
        Self { state: self.state.clone(), live: self.live.clone(), turn: state.turn }
    }

    /// Locks the state; `None` if this turn has ended or another one has started.
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

    /// Replaces the history. The running turn is cancelled.
    pub(crate) fn set_history(&mut self, history: Vec<Message>) {
        self.end_turn();
        (self.history, self.dropped, self.open) = (history, 0, None);
    }

    /// Changes the history by the running turn, adds its reply, and ends the turn. `open`: the reply, if it
    /// was cut off.
    pub(crate) fn complete(&mut self, change: HistoryChange, reply: Message, open: Option<CutReply>) {
        if change.continues.is_some() {
            self.history.pop();
        }
        self.history.extend(change.messages);
        self.history.push(reply);
        self.dropped = change.dropped.min(self.history.len());
        if change.place == DroppedHistory::Removed {
            self.history.drain(..self.dropped);
            self.dropped = 0;
        }
        self.open = open;
        self.live.store(0, Ordering::Release);
        self.running = None;
    }
}
