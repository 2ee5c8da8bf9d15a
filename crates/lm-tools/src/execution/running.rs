//! Running calls of one reply.

pub(crate) use super::answer::not_run;
use super::answer::{Answer, NOT_RUN, Owed};
use super::watch::{End, Watched};
use crate::toolset::Entry;
use crate::{CallContext, ToolFuture, ToolOutput, Toolset};
use async_channel::{Receiver, Sender};
use lm_conversation::CancelHandle;
use lm_template::{Message, ToolCall};
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::iter::FusedIterator;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Poll;
use std::thread;
use std::time::Instant;

/// Result with the number of its call.
type Numbered = (usize, Message);

/// Results of calls in the order of the calls, one for each; made by [`Toolset::start`]. As an iterator it blocks,
/// [`recv`](Self::recv) waits without blocking.
///
/// Calls begin in order, at most [`CallLimits::max_parallel`](crate::CallLimits::max_parallel) at a time, and later ones as results are
/// read. Dropping it cancels those that run.
#[derive(Debug)]
pub struct RunningCalls {
    tools: Toolset,
    cancel: CancelHandle,
    deadline: Option<Instant>,
    /// Calls that were not begun, with their numbers.
    waiting: VecDeque<(usize, ToolCall)>,
    running: usize,
    /// Results that were not returned.
    ready: BTreeMap<usize, Message>,
    /// Number of the next result.
    next: usize,
    len: usize,
    results: (Sender<Numbered>, Receiver<Numbered>),
}

impl RunningCalls {
    pub(crate) fn new(
        tools: &Toolset,
        calls: Vec<ToolCall>,
        cancel: &CancelHandle,
        deadline: Option<Instant>,
    ) -> Self {
        let mut running = Self {
            tools: tools.clone(),
            cancel: cancel.child(),
            deadline,
            len: calls.len(),
            waiting: calls.into_iter().enumerate().collect(),
            running: 0,
            ready: BTreeMap::new(),
            next: 0,
            results: async_channel::unbounded(),
        };
        running.begin();
        running
    }

    /// Waits for the next result without blocking; `None` after the last one. It can be dropped while it waits.
    pub async fn recv(&mut self) -> Option<Message> {
        loop {
            if let Some(result) = self.take() {
                return result;
            }
            let (index, result) = self.results.1.recv().await.ok()?;
            self.put(index, result);
        }
    }

    /// Begins as many calls as may run.
    fn begin(&mut self) {
        while self.running < self.tools.limits().max_parallel.max(1)
            && let Some((index, call)) = self.waiting.pop_front()
        {
            let is_over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if is_over || self.cancel.is_cancelled() {
                self.ready.insert(index, not_run(&call));
            } else {
                self.running += 1;
                self.start(index, call);
            }
        }
    }

    /// Returns the next result if it is there; `None` inside at the end.
    fn take(&mut self) -> Option<Option<Message>> {
        if self.next == self.len {
            return Some(None);
        }
        let result = self.ready.remove(&self.next)?;
        self.next += 1;
        Some(Some(result))
    }

    fn put(&mut self, index: usize, result: Message) {
        self.running -= 1;
        self.ready.insert(index, result);
        self.begin();
    }

    /// Starts a call on a thread, or on the runtime of asynchronous tools.
    fn start(&self, index: usize, call: ToolCall) {
        let limits = *self.tools.limits();
        let started = Instant::now();
        let answer = Arc::new(Answer {
            index,
            id: call.id.clone(),
            name: call.name.clone(),
            started,
            max_bytes: limits.max_result_bytes,
            results: self.results.0.clone(),
            given: AtomicBool::new(false),
        });
        let entry = match self.tools.checked(&call) {
            Ok(entry) => entry,
            Err(error) => return answer.give(Err(error)),
        };
        let timeout = entry.timeout.or(limits.timeout);
        let ends = timeout.and_then(|timeout| started.checked_add(timeout));
        let deadline = [ends, self.deadline].into_iter().flatten().min();
        let handle = self.cancel.child();
        let context = CallContext::new(
            (call.id.clone(), call.name.clone()),
            handle.clone(),
            deadline,
            self.tools.states().clone(),
        );
        let end = Arc::new(End::default());
        self.tools.watcher().watch(Watched {
            answer: answer.clone(),
            turn: self.cancel.clone(),
            call: handle.clone(),
            end: end.clone(),
            deadline,
            cancel_grace: limits.cancel_grace,
            cancelled: None,
        });
        let spawner = self.tools.spawner().cloned();
        let given = Owed(answer.clone());
        let run = move || match (call_tool(&entry, call, &context), spawner) {
            (ToolOutput::Ready(result), _) => given.0.give(result.map_err(|error| error.to_string())),
            (ToolOutput::Pending(future), Some(spawn)) => {
                spawn(Box::pin(finish(future, handle, given, end)));
            }
            (ToolOutput::Pending(future), None) => {
                pollster::block_on(finish(future, handle, given, end));
            }
        };
        self.launch(run, &answer.name);
    }

    /// Runs a call: at once if it returns a future for the runtime, on a thread otherwise. A call that is dropped unrun has a result
    /// ([`Owed`]).
    fn launch(&self, run: impl FnOnce() + Send + 'static, name: &str) {
        if self.tools.spawner().is_some() && self.tools.is_async(name) {
            if catch_unwind(AssertUnwindSafe(run)).is_err() {
                tracing::error!(tool = name, "the spawner panicked");
            }
            return;
        }
        let span = tracing::info_span!("tool_call", tool = name);
        let thread = thread::Builder::new().name("lm-tool".to_owned());
        if let Err(error) = thread.spawn(move || span.in_scope(run)) {
            tracing::error!(%error, tool = name, "no thread for a call");
        }
    }
}

/// Calls the tool; its panic is an error.
fn call_tool(entry: &Entry, call: ToolCall, context: &CallContext) -> ToolOutput {
    // Unwind safety is the tool's responsibility.
    catch_unwind(AssertUnwindSafe(|| entry.tool.call(call.arguments, context)))
        .unwrap_or_else(|payload| ToolOutput::Ready(Err(crate::ToolError::failed(panicked(&*payload)))))
}

/// Polls a call to its end, or until it is abandoned. The call's panic is an error.
async fn finish(mut future: ToolFuture, call: CancelHandle, owed: Owed, end: Arc<End>) {
    if call.is_cancelled() {
        return owed.0.give(Err(NOT_RUN.to_owned())); // The runtime was late.
    }
    let result = poll_fn(|context| {
        if end.poll(context) {
            return Poll::Ready(None); // Dropping the future ends it.
        }
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(|result| Some(result.map_err(|error| error.to_string()))),
            Err(payload) => Poll::Ready(Some(Err(panicked(&*payload)))),
        }
    });
    if let Some(result) = result.await {
        owed.0.give(result);
    }
}

fn panicked(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
    format!("the tool panicked: {text}")
}

impl Iterator for RunningCalls {
    type Item = Message;

    /// Waits for the next result.
    fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(result) = self.take() {
                return result;
            }
            let (index, result) = self.results.1.recv_blocking().ok()?;
            self.put(index, result);
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
    }
}
