//! State that a conversation shares with its running turn.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use lm_session::{CancelHandle, ImageOptions, Session};
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
    /// Notified at the end of a turn.
    ended: Arc<Condvar>,
    turn: u64,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) session: Session,
    pub(crate) history: Vec<Message>,
    /// Image options of the first history messages, if their turns had their own.
    pub(crate) image_options: Vec<Option<ImageOptions>>,
    /// Number of leading history messages omitted from prompts.
    pub(crate) dropped: usize,
    /// The last reply, if it was cut off.
    pub(crate) open: Option<CutReply>,
    /// Number of the newest turn, and its handle while it runs.
    turn: u64,
    running: Option<CancelHandle>,
    detached: Option<Detached>,
    live: Arc<AtomicU64>,
    ended: Arc<Condvar>,
}

/// The running turn, if it is detached: its thread, once it has started.
#[derive(Debug, Clone, Copy, Default)]
struct Detached {
    thread: Option<ThreadId>,
}

impl SharedState {
    pub(crate) fn new(session: Session) -> Self {
        let (live, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(Condvar::new()));
        let state = State {
            session,
            history: Vec::new(),
            image_options: Vec::new(),
            dropped: 0,
            open: None,
            turn: 0,
            running: None,
            detached: None,
            live: live.clone(),
            ended: ended.clone(),
        };
        Self { state: Arc::new(Mutex::new(state)), live, ended, turn: 0 }
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
        copy.image_options.clone_from(&state.image_options);
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
        Self { turn: state.turn, ..self.clone() }
    }

    /// Marks this turn as detached, so that later ones wait for its end.
    pub(crate) fn detach(&self) {
        if let Some(mut state) = self.lock_turn() {
            state.detached = Some(Detached::default());
        }
    }

    /// Notes that this detached turn runs on the current thread, which never waits for it.
    pub(crate) fn run_here(&self) {
        let mut state = self.lock_turn();
        if let Some(detached) = state.as_mut().and_then(|state| state.detached.as_mut()) {
            detached.thread = Some(thread::current().id());
        }
    }

    /// Waits until no detached turn runs, except on its own thread.
    pub(crate) fn wait_detached(&self) {
        let here = thread::current().id();
        let other = |state: &mut State| state.detached.is_some_and(|detached| detached.thread != Some(here));
        drop(self.ended.wait_while(self.lock(), other));
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
        if let Some(cancel) = self.mark_ended() {
            cancel.cancel();
        }
    }

    /// Ends the running turn, and returns its handle.
    fn mark_ended(&mut self) -> Option<CancelHandle> {
        self.live.store(0, Ordering::Release);
        self.detached = None;
        self.ended.notify_all();
        self.running.take()
    }

    /// Replaces the history. The running turn is cancelled.
    pub(crate) fn set_history(&mut self, history: Vec<Message>) {
        self.end_turn();
        (self.history, self.dropped, self.open) = (history, 0, None);
        self.image_options.clear();
    }

    /// Changes the history by the running turn, adds its reply, and ends the turn. `open`: the reply, if it
    /// was cut off.
    pub(crate) fn complete(&mut self, change: HistoryChange, reply: Message, open: Option<CutReply>) {
        if change.continues.is_some() {
            self.history.pop();
        }
        if change.image_options.is_some() {
            self.image_options.resize(self.history.len(), None);
            self.image_options.extend(vec![change.image_options; change.messages.len()]);
        }
        self.history.extend(change.messages);
        self.history.push(reply);
        self.dropped = change.dropped.min(self.history.len());
        if change.place == DroppedHistory::Removed {
            self.history.drain(..self.dropped);
            self.image_options.drain(..self.dropped.min(self.image_options.len()));
            self.dropped = 0;
        }
        self.open = open;
        self.mark_ended();
    }
}
