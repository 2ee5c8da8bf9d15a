//! Slot for the single result of a call.

use super::content::{MaxBytes, content, discard};
use super::event::CallResult;
use super::updates::{Reporter, Updates};
use crate::tool_error::{ToolError, ToolErrorKind};
use lm_template::{Message, ToolCall};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Bit of a finished call.
const GIVEN: u32 = 1 << 31;
/// Error of a call that was not run.
const NOT_RUN: &str = "the call was not run: the turn was ended";

/// Slot for the result of one call; the first result counts.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Number of the call in its reply.
    index: usize,
    id: Option<String>,
    name: String,
    started: Instant,
    max_bytes: MaxBytes,
    updates: Arc<Updates>,
    /// Number of started attempts, with [`GIVEN`] once there is a result.
    state: AtomicU32,
}

impl Answer {
    /// Creates the slot of a call that starts now, with its number.
    pub fn new((index, call): (usize, &ToolCall), max_bytes: MaxBytes, updates: Arc<Updates>) -> Self {
        Self {
            index,
            id: call.id.clone(),
            name: call.name.clone(),
            started: Instant::now(),
            max_bytes,
            updates,
            state: AtomicU32::new(0),
        }
    }

    /// Sets the result; a later one is dropped.
    pub fn give(&self, result: Result<Value, ToolError>) {
        match self.close() {
            Some(attempts) => self.send(attempts, result),
            None => {
                let elapsed_ms = self.started.elapsed().as_millis();
                tracing::warn!(tool = self.name, elapsed_ms, "an abandoned call has ended");
                if let Ok(late) = result {
                    discard(late);
                }
            }
        }
    }

    /// Sets an error, made from the number of started attempts, unless there is a result.
    pub fn give_up(&self, error: impl FnOnce(u32) -> ToolError) {
        if let Some(attempts) = self.close() {
            self.send(attempts, Err(error(attempts)));
        }
    }

    /// Returns true if there is a result.
    pub fn is_given(&self) -> bool {
        self.state.load(Ordering::Acquire) & GIVEN != 0
    }

    /// Counts an attempt, and returns its number, from 1; `None` if there is a result: no further attempt may
    /// start.
    pub fn begin_attempt(&self) -> Option<u32> {
        let next = |state: u32| (state & GIVEN == 0).then_some(state + 1);
        self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).ok().map(|before| before + 1)
    }

    /// Ends the call, and returns the number of its attempts; `None` if there is a result.
    fn close(&self) -> Option<u32> {
        let before = self.state.fetch_or(GIVEN, Ordering::AcqRel);
        (before & GIVEN == 0).then_some(before)
    }

    fn send(&self, attempts: u32, result: Result<Value, ToolError>) {
        let elapsed = self.started.elapsed();
        let (content, error) = match result.and_then(|value| content(value, self.max_bytes)) {
            Ok(content) => (content, None),
            Err(error) => (self.failure(attempts, &error), Some(error)),
        };
        log(&self.name, attempts, elapsed, error.as_ref());
        let message = Message::tool(self.id.as_deref(), self.name.as_str(), content);
        self.updates.finish(CallResult { index: self.index, message, error, attempts, elapsed });
    }

    pub fn index(&self) -> usize {
        self.index
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn started(&self) -> Instant {
        self.started
    }

    pub fn updates(&self) -> &Updates {
        &self.updates
    }

    /// Reporter of the call's progress.
    pub fn reporter(&self) -> Reporter {
        Reporter::new(self.index, self.updates.clone())
    }

    /// Content of the result of a call that failed, with the number of attempts if there were several.
    fn failure(&self, attempts: u32, error: &ToolError) -> Value {
        let text = match attempts {
            0 | 1 => error.to_string(),
            _ => format!("{error} ({attempts} attempts)"),
        };
        content(failure(&self.name, &text), self.max_bytes).unwrap_or(Value::String(text))
    }
}

fn log(tool: &str, attempts: u32, elapsed: Duration, error: Option<&ToolError>) {
    let elapsed_ms = elapsed.as_millis();
    match error {
        None => tracing::debug!(tool, attempts, elapsed_ms, "the call succeeded"),
        Some(error) => {
            let (kind, error) = (error.kind(), error.log_text());
            tracing::debug!(tool, attempts, elapsed_ms, ?kind, %error, "the call failed");
        }
    }
}

/// Answer that becomes an error if its holder is dropped without a result, as by a runtime that ends.
#[derive(Debug)]
pub(crate) struct PendingAnswer(pub Arc<Answer>);

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        self.0.give_up(|attempts| match attempts {
            0 => ToolError::new(
                ToolErrorKind::Unavailable,
                "the call was not run: no thread or runtime took it",
            ),
            _ => ToolError::new(
                ToolErrorKind::Cancelled,
                "the call ended without a result; it may have taken effect",
            ),
        });
    }
}

/// Error of a call that was not run because its turn ended first.
pub(crate) fn ended_before() -> ToolError {
    ToolError::new(ToolErrorKind::Cancelled, NOT_RUN)
}

/// Result of a call that was not run.
pub(crate) fn not_run(call: &ToolCall) -> Message {
    let result = failure(&call.name, NOT_RUN);
    Message::tool(call.id.as_deref(), call.name.as_str(), result)
}

/// Result of a call that failed.
fn failure(name: &str, error: &str) -> Value {
    json!({"tool_name": name, "error": error})
}
