//! Run of one call: its attempts, one after the other.

use super::place::Place;
use crate::context::CallContext;
use crate::execution::CallEvent;
use crate::execution::RetryPolicy;
use crate::execution::RunState;
use crate::execution::{Answer, PendingAnswer, ended_before};
use crate::tool::{ToolFuture, ToolOutput};
use crate::tool_error::{ToolError, ToolErrorKind};
use crate::toolset::Entry;
use futures_util::future::{AbortHandle, abortable, select};
use lm_template::{Map, Value};
use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Run of one call.
pub(super) struct Attempts {
    pub entry: Arc<Entry>,
    pub arguments: Map<String, Value>,
    pub context: CallContext,
    pub pending: PendingAnswer,
    pub state: Arc<RunState>,
    pub retries: RetryPolicy,
    pub place: Place,
}

impl Attempts {
    /// Runs the call in its place.
    pub async fn run(self) {
        let is_late = matches!(self.place, Place::Runtime(_)) && self.context.is_cancelled();
        let result = if is_late { Err(ended_before()) } else { self.result().await };
        self.answer().give(result);
    }

    fn answer(&self) -> &Answer {
        &self.pending.0
    }

    async fn result(&self) -> Result<Value, ToolError> {
        loop {
            let Some(attempt) = self.answer().begin_attempt() else { return Err(ended_before()) };
            let result = match self.call() {
                ToolOutput::Ready(result) => result,
                ToolOutput::Pending(future) => self.finish(future).await,
            };
            let error = match result {
                Err(error) => error.cut(),
                value => return value,
            };
            let Some((delay, next)) = self.delay(attempt, &error) else { return Err(error) };
            self.report(attempt, &error, delay);
            if !self.pause(next).await {
                return Err(error);
            }
        }
    }

    /// Calls the tool; its panic is an error.
    fn call(&self) -> ToolOutput {
        // Unwind safety is the tool's responsibility.
        catch_unwind(AssertUnwindSafe(|| self.entry.tool.call(self.arguments.clone(), &self.context)))
            .unwrap_or_else(|payload| ToolOutput::Ready(Err(panicked(&*payload))))
    }

    /// Runs a tool's future to its end.
    async fn finish(&self, future: ToolFuture) -> Result<Value, ToolError> {
        let Place::Thread(Some(spawn)) = &self.place else { return caught(future).await };
        let (sender, result) = async_channel::bounded(1);
        let (future, abort) = abortable(async move {
            let _ = sender.try_send(caught(future).await);
        });
        let _abort = AbortOnDrop(abort);
        spawn(Box::pin(async move {
            let _ended = future.await;
        }));
        let lost = || ToolError::new(ToolErrorKind::Cancelled, "the runtime dropped the call's future");
        result.recv().await.unwrap_or_else(|_| Err(lost()))
    }

    /// Delay and time of the next attempt; `None` if there is none.
    fn delay(&self, attempt: u32, error: &ToolError) -> Option<(Duration, Instant)> {
        let delay = self.retries.after(attempt, error, &self.entry.annotations)?;
        let next = Instant::now().checked_add(delay)?;
        let is_late = self.context.deadline().is_some_and(|deadline| next >= deadline);
        (!is_late && !self.context.is_cancelled()).then_some((delay, next))
    }

    fn report(&self, attempt: u32, error: &ToolError, delay: Duration) {
        let (tool, kind, delay_ms) = (self.context.name(), error.kind(), delay.as_millis());
        tracing::info!(tool, attempt, delay_ms, ?kind, error = %error.log_text(), "the call is tried again");
        let index = self.answer().index();
        let event = CallEvent::Retry { index, attempt, error: error.clone(), delay };
        self.answer().updates().report(index, event);
    }

    /// Waits; returns true if the call was not cancelled meanwhile.
    async fn pause(&self, until: Instant) -> bool {
        select(pin!(self.state.pause(until)), pin!(self.context.cancelled())).await;
        !self.context.is_cancelled()
    }
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Polls a tool's future; its panic is an error.
async fn caught(mut future: ToolFuture) -> Result<Value, ToolError> {
    let result = poll_fn(|context| {
        catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)))
            .unwrap_or_else(|payload| Poll::Ready(Err(panicked(&*payload))))
    })
    .await;
    if catch_unwind(AssertUnwindSafe(|| drop(future))).is_err() {
        tracing::error!("the future of a tool panicked after its result");
    }
    result
}

fn panicked(payload: &(dyn Any + Send)) -> ToolError {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
    ToolError::new(ToolErrorKind::Panicked, format_args!("the tool panicked: {text}"))
}
