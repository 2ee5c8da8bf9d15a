//! Events of running calls.

use crate::tool_error::ToolError;
use lm_template::{Message, ToolCall, Value};
use std::time::Duration;

/// An event of [`RunningCalls`](crate::RunningCalls). Calls are named by their number in the reply, from 0.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CallEvent {
    /// A running call reports its progress: [`CallContext::progress`](crate::CallContext::progress).
    Progress {
        /// Number of the call.
        index: usize,
        /// A text, or JSON in a form defined by the tool.
        progress: Value,
    },
    /// An attempt failed and is retried: [`RetryPolicy`](crate::RetryPolicy).
    Retry {
        /// Number of the call.
        index: usize,
        /// Number of the attempt that failed, from 1.
        attempt: u32,
        /// Its error.
        error: ToolError,
        /// Time until the next attempt.
        delay: Duration,
    },
    /// A call has its result: one event for each call, in the order of the calls.
    Finished(Box<CallResult>),
}

/// Result of a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CallResult {
    /// Number of the call in its reply, from 0.
    pub index: usize,
    /// Tool message for the model, with the call's id and name.
    pub message: Message,
    /// Error of the call; `None` if it succeeded.
    pub error: Option<ToolError>,
    /// Number of attempts; 0 if the tool was not run.
    pub attempts: u32,
    /// Time from the start of the call to its result.
    pub elapsed: Duration,
}

impl CallResult {
    /// Result of a call that was not started.
    pub(crate) fn not_run(index: usize, call: &ToolCall) -> Self {
        let message = super::not_run(call);
        let error = Some(super::answer::ended_before());
        Self { index, message, error, attempts: 0, elapsed: Duration::ZERO }
    }
}
