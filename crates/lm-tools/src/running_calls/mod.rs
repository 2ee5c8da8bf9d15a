//! Running calls of one reply: several at a time, each within its limits and with exactly one result.

mod attempts;
mod place;
mod start;
#[cfg(test)]
mod tests;

use crate::context::CallContext;
use crate::context::Reader;
use crate::execution::{Answer, PendingAnswer};
use crate::execution::{CallEvent, CallResult};
use crate::execution::{RunState, Watched};
use crate::execution::{Update, Updates};
use crate::tool_error::{ToolError, ToolErrorKind};
use crate::toolset::Entry;
use crate::toolset::Toolset;
use async_channel::Receiver;
use attempts::Attempts;
use futures_util::future::abortable;
use lm_conversation::CancelHandle;
use lm_session::caught_wakes;
use lm_template::{Message, ToolCall};
use place::Place;
use std::collections::{BTreeMap, VecDeque};
use std::iter::FusedIterator;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Results of calls in the order of the calls, one for each; made by [`Toolset::start`]. As an iterator it
/// blocks, [`recv`](Self::recv) waits without blocking. [`next_event`](Self::next_event) and
/// [`recv_event`](Self::recv_event) return progress and retries as well, and the results with their errors
/// and numbers of attempts.
///
/// Calls begin in order, at most [`CallLimits::max_parallel`](crate::CallLimits::max_parallel) at a time, and
/// later ones as results are read. Dropping it cancels the running ones.
#[derive(Debug)]
pub struct RunningCalls {
    tools: Toolset,
    cancel: CancelHandle,
    deadline: Option<Instant>,
    /// Calls that were not started, with their numbers.
    waiting: VecDeque<(usize, ToolCall)>,
    running: usize,
    /// A sequential call runs.
    is_alone: bool,
    /// Results that were not returned.
    ready: BTreeMap<usize, Box<CallResult>>,
    /// Number of the next result.
    next: usize,
    len: usize,
    updates: Arc<Updates>,
    received: Receiver<Update>,
}

impl RunningCalls {
    pub(crate) fn new(
        tools: &Toolset,
        calls: Vec<ToolCall>,
        cancel: &CancelHandle,
        deadline: Option<Instant>,
    ) -> Self {
        let (updates, received) = Updates::new(calls.len());
        let mut running = Self {
            tools: tools.clone(),
            cancel: cancel.child(),
            deadline,
            len: calls.len(),
            waiting: calls.into_iter().enumerate().collect(),
            running: 0,
            is_alone: false,
            ready: BTreeMap::new(),
            next: 0,
            updates,
            received,
        };
        running.begin();
        running
    }

    /// Waits for the next event without blocking; `None` after the last result. It can be dropped while it
    /// waits.
    pub async fn recv_event(&mut self) -> Option<CallEvent> {
        loop {
            if let Some(event) = self.take() {
                return event;
            }
            let update = caught_wakes(self.received.recv()).await.ok()?;
            self.put(update);
        }
    }

    /// Waits for the next event; `None` after the last result. The events of a call precede its result;
    /// events of different calls are in the order of time.
    pub fn next_event(&mut self) -> Option<CallEvent> {
        loop {
            if let Some(event) = self.take() {
                return event;
            }
            let update = self.received.recv_blocking().ok()?;
            self.put(update);
        }
    }

    /// Waits for the next result without blocking; `None` after the last one. It can be dropped while it
    /// waits.
    pub async fn recv(&mut self) -> Option<Message> {
        loop {
            if let CallEvent::Finished(result) = self.recv_event().await? {
                return Some(result.message);
            }
        }
    }

    /// Starts as many calls as may run.
    fn begin(&mut self) {
        while let Some((_, call)) = self.waiting.front() {
            let alone = self.tools.entry(&call.name).is_some_and(|entry| entry.is_sequential);
            let most = if alone || self.is_alone { 1 } else { self.tools.limits().max_parallel.max(1) };
            if self.running >= most {
                return;
            }
            let Some((index, call)) = self.waiting.pop_front() else { return };
            let is_over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if is_over || self.cancel.is_cancelled() {
                self.ready.insert(index, Box::new(CallResult::not_run(index, &call)));
                continue;
            }
            self.running += 1;
            self.is_alone = alone;
            self.start(index, call);
        }
    }

    /// Returns the next event if it is there; `None` inside at the end.
    fn take(&mut self) -> Option<Option<CallEvent>> {
        // Endless reports must not delay a result.
        for _ in 0..self.received.len() {
            let Ok(update) = self.received.try_recv() else { break };
            self.put(update);
        }
        if self.next == self.len {
            return Some(None);
        }
        let is_ready = self.ready.contains_key(&self.next);
        if let Some(report) = self.updates.next_report(is_ready.then_some(self.next)) {
            return Some(Some(report));
        }
        let result = self.ready.remove(&self.next)?;
        self.next += 1;
        Some(Some(CallEvent::Finished(result)))
    }

    fn put(&mut self, update: Update) {
        let Update::Finished(result) = update else { return self.updates.read() };
        self.running -= 1;
        self.updates.close(result.index);
        self.ready.insert(result.index, result);
        self.begin();
    }

    /// Starts a call, or sets its error.
    fn start(&self, index: usize, mut call: ToolCall) {
        let max_bytes = self.tools.limits().result_bytes();
        let answer = Arc::new(Answer::new((index, &call), max_bytes, self.updates.clone()));
        match self.admitted(&mut call) {
            Ok(entry) => self.run(entry, call, answer),
            Err(error) => answer.give(Err(error)),
        }
    }

    /// Returns the tool of a call that may run.
    fn admitted(&self, call: &mut ToolCall) -> Result<Arc<Entry>, ToolError> {
        let entry = self.tools.checked(call)?;
        let abandoned = self.tools.watcher().abandoned().load(Ordering::Acquire);
        if abandoned < self.tools.limits().max_abandoned.max(1) {
            return Ok(entry);
        }
        let text = format_args!(
            "the call was not run: {abandoned} calls that exceeded their time limits or were cancelled have not ended; \
             wait until some of them have, or do without the tool"
        );
        Err(ToolError::new(ToolErrorKind::Unavailable, text))
    }

    /// Runs a call within its limits.
    fn run(&self, entry: Arc<Entry>, call: ToolCall, answer: Arc<Answer>) {
        let (limits, states) = (*self.tools.limits(), entry.states.clone());
        let timeout = entry.timeout.or(limits.timeout);
        let ends = timeout.and_then(|timeout| answer.started().checked_add(timeout));
        let deadline = [ends, self.deadline].into_iter().flatten().min();
        let handle = self.cancel.child();
        let (notice, cancelled) = async_channel::bounded(1);
        let reader = Reader { reporter: answer.reporter(), cancelled };
        let place = Place::of(&entry, self.tools.spawner());
        let state = Arc::new(RunState::default());
        let attempts = Attempts {
            retries: entry.retries.unwrap_or(limits.retries),
            context: CallContext::new(&call, handle.clone(), deadline, states, reader),
            arguments: call.arguments,
            pending: PendingAnswer(answer.clone()),
            state: state.clone(),
            place: place.clone(),
            entry,
        };
        let (run, abort) = abortable(attempts.run());
        let watched = Watched {
            answer,
            turn: self.cancel.clone(),
            call: handle,
            notice,
            abort,
            run: state,
            deadline,
            cancel_grace: limits.cancel_grace,
            cancelled: None,
        };
        // A dropped run sets its result.
        let launched = self.tools.watcher().watch(watched).and_then(|()| place.launch(run, &call.name));
        if let Err(error) = launched {
            tracing::error!(%error, tool = call.name, "the system has no thread for a call");
        }
    }
}

impl Iterator for RunningCalls {
    type Item = Message;

    /// Waits for the next result.
    fn next(&mut self) -> Option<Message> {
        loop {
            if let CallEvent::Finished(result) = self.next_event()? {
                return Some(result.message);
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len - self.next, Some(self.len - self.next))
    }
}

impl FusedIterator for RunningCalls {}
impl ExactSizeIterator for RunningCalls {}

impl Drop for RunningCalls {
    fn drop(&mut self) {
        self.cancel.cancel();
        self.updates.close_all();
    }
}
