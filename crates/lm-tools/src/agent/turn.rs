//! A running turn: an iterator, a future, or a stream.

use super::driver::Events;
use super::state::Shared;
use super::{AgentEvent, AgentReply};
use crate::error::{Error, Result};
use crate::steps::AgentStep;
use futures_core::Stream;
use lm_conversation::CancelHandle;
use std::fmt;
use std::future::poll_fn;
use std::iter::FusedIterator;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tracing::Span;

/// Maximum number of remaining events of a dropped turn: reports of running calls.
const MAX_READY: usize = 1000;

/// Future of a turn's reply.
pub(super) type Task = Pin<Box<dyn Future<Output = Result<AgentReply>> + Send>>;

/// A running turn of an [`Agent`](super::Agent). It borrows nothing: it can be moved to another thread or
/// task.
///
/// It is read as an iterator, which blocks, with [`recv`](Self::recv) or as a [`Stream`] in async code, or to
/// its end with [`into_reply`](Self::into_reply) and `.await`, which need no runtime. The last event is
/// [`AgentEvent::Finished`] or an error. The turn continues only while it is read; calls and the model run in
/// the background, and only the prompt of a reply is rendered by the reader. Dropping it before its end
/// cancels the turn at once, without waiting, and so does the next turn of the agent.
///
/// ```
/// # use lm_model::{LoadOptions, ModelFolder};
/// # use lm_session::{Engine, EngineSettings};
/// # let folder = ModelFolder::embedded(lm_pocket::NAME, lm_pocket::FILES);
/// # let engine = Engine::load(&folder, &LoadOptions::default(), EngineSettings::default(), &mut |_| {})?;
/// use lm_tools::{Agent, AgentEvent, demo};
///
/// let mut agent = Agent::builder(&engine, demo()).build()?;
/// let mut turn = agent.stream("How is the weather in Paris?")?;
/// # futures_executor::block_on(async {
/// while let Some(event) = turn.recv().await {
///     match event? {
///         AgentEvent::Text(text) => print!("{text}"),
///         AgentEvent::ToolResult(step) => println!("{} → {}", step.call.name, step.result.content.text()),
///         _ => {}
///     }
/// }
/// # Ok::<(), lm_tools::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a turn that is dropped is cancelled"]
pub struct AgentTurn {
    /// `None` after the turn.
    task: Option<Task>,
    events: Events,
    state: Shared,
    cancel: CancelHandle,
    span: Span,
}

impl AgentTurn {
    pub(super) fn new(task: Task, events: Events, state: Shared, cancel: CancelHandle, span: Span) -> Self {
        Self { task: Some(task), events, state, cancel, span }
    }

    /// Returns the handle that cancels this turn alone, from any thread: within one step of the engine, and
    /// the running tools as [`Toolset::start`](crate::Toolset::start) says.
    pub fn canceller(&self) -> CancelHandle {
        self.cancel.clone()
    }

    /// The calls so far with their results, also after an error.
    pub fn steps(&self) -> Vec<AgentStep> {
        self.state.lock().steps.clone()
    }

    /// Waits for the next event without blocking; `None` after the last one. It can be dropped while it
    /// waits, and called again.
    pub async fn recv(&mut self) -> Option<Result<AgentEvent>> {
        poll_fn(|context| self.poll_event(context)).await
    }

    /// Reads all events and returns the reply. It blocks; in async code, `.await` the turn instead.
    ///
    /// # Errors
    /// The turn's error.
    pub fn into_reply(self) -> Result<AgentReply> {
        pollster::block_on(self.finish())
    }

    /// Converts the turn to a [`Stream`].
    pub fn into_stream(self) -> AgentStream {
        AgentStream { turn: self }
    }

    async fn finish(mut self) -> Result<AgentReply> {
        while let Some(event) = self.recv().await {
            if let AgentEvent::Finished(reply) = event? {
                return Ok(reply);
            }
        }
        Err(Error::Cancelled)
    }

    /// Takes the available results of calls, in the order of the calls, without waiting for others.
    fn take_ready(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..MAX_READY {
            match self.poll_event(&mut context) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(_) | Poll::Pending => return,
            }
        }
    }

    /// Polls the turn up to its next event.
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<AgentEvent>>> {
        // Taken out: a task that panics is dropped, since another poll, as in `drop`, would panic again.
        let Some(mut task) = self.task.take() else { return Poll::Ready(None) };
        match self.span.in_scope(|| task.as_mut().poll(context)) {
            Poll::Ready(reply) => Poll::Ready(Some(reply.map(AgentEvent::Finished))),
            Poll::Pending => {
                self.task = Some(task);
                self.events.take().map_or(Poll::Pending, |event| Poll::Ready(Some(Ok(event))))
            }
        }
    }
}

impl Iterator for AgentTurn {
    type Item = Result<AgentEvent>;

    /// Waits for the next event, and blocks.
    fn next(&mut self) -> Option<Self::Item> {
        pollster::block_on(self.recv())
    }
}

impl FusedIterator for AgentTurn {}

impl IntoFuture for AgentTurn {
    type Output = Result<AgentReply>;
    type IntoFuture = Task;

    /// Reads the turn to its end.
    fn into_future(self) -> Task {
        Box::pin(self.finish())
    }
}

impl Drop for AgentTurn {
    fn drop(&mut self) {
        self.cancel.cancel();
        if !std::thread::panicking() {
            self.take_ready();
        }
        self.task = None; // First: it may add the beginning of a reply to the history.
        self.state.end();
    }
}

impl fmt::Debug for AgentTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentTurn").field("is_over", &self.task.is_none()).finish_non_exhaustive()
    }
}

/// An [`AgentTurn`] as a [`Stream`]; see [`AgentTurn::into_stream`].
#[derive(Debug)]
#[must_use = "a turn that is dropped is cancelled"]
pub struct AgentStream {
    turn: AgentTurn,
}

impl AgentStream {
    /// Returns the handle that cancels this turn alone, from any thread.
    pub fn canceller(&self) -> CancelHandle {
        self.turn.canceller()
    }
}

impl Stream for AgentStream {
    type Item = Result<AgentEvent>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.turn.poll_event(context)
    }
}
