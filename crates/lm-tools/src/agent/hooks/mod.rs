//! Hooks: code that decides on calls, reads their results and keeps a record of them.

mod approval;
mod audit;
mod replay;

pub use approval::{Approval, ApprovalRequest};
pub use audit::{Audit, AuditEntry};
pub use replay::Replay;

use crate::annotations::ToolAnnotations;
use crate::steps::AgentStep;
use lm_template::{Map, ToolCall, Value};
use std::sync::Arc;

/// A call that is about to run.
#[derive(Clone, Copy, Debug)]
pub struct CallRequest<'a> {
    /// The call, with its arguments after earlier hooks.
    pub call: &'a ToolCall,
    /// Hints about the tool's effects; the default for an unknown tool.
    pub annotations: &'a ToolAnnotations,
    /// Number of the round, from 0.
    pub round: usize,
}

/// Decision on a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// The call runs, unless a later hook decides otherwise.
    Run,
    /// It runs with these arguments, which the toolset validates. The history keeps the model's call.
    Edit(Map<String, Value>),
    /// It does not run; the model reads this text as the error of the call.
    Deny(String),
    /// It does not run; this is its result, in the form of a tool result: a number or a list becomes text,
    /// unless it is a list of parts of a message.
    Answer(Value),
    /// The reader of the events decides: [`AgentEvent::Approval`](super::AgentEvent::Approval). The call is
    /// denied without an answer.
    Ask,
    /// The turn ends, with this text in [`StopReason::Hook`](crate::StopReason::Hook). No call of the round
    /// runs.
    Stop(String),
}

/// Reaction to the result of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum AfterCall {
    /// The result stays unchanged.
    Keep,
    /// The model reads this result instead, in the form of [`Decision::Answer`].
    Replace(Value),
    /// The turn ends when the round's calls have their results, with this text in
    /// [`StopReason::Hook`](crate::StopReason::Hook).
    Stop(String),
}

/// Extension point of a turn: an approval policy, a log, a cache, a guard.
///
/// Hooks run in the order in which they were added, on the thread or task that reads the turn, so they must
/// return quickly; a decision that takes long is [`Decision::Ask`]. A hook that panics ends the turn as
/// [`Decision::Stop`] does. [`Approval`] has predefined policies; [`Audit`] and [`Replay`] are hooks, too.
///
/// ```
/// use lm_tools::{AfterCall, AgentStep, CallRequest, Decision, Hook};
///
/// /// Keeps calls inside one folder, and hides a secret.
/// struct Guard;
///
/// impl Hook for Guard {
///     fn before_call(&self, request: &CallRequest<'_>) -> Decision {
///         match request.call.arguments.get("path").and_then(|path| path.as_str()) {
///             Some(path) if !path.starts_with("notes/") => Decision::Deny("only files in notes/ are open".to_owned()),
///             _ => Decision::Run,
///         }
///     }
///
///     fn after_call(&self, step: &AgentStep) -> AfterCall {
///         let text = step.result.content.text();
///         if text.contains("s3cret") { AfterCall::Replace(text.replace("s3cret", "…").into()) } else { AfterCall::Keep }
///     }
/// }
/// ```
pub trait Hook: Send + Sync {
    /// Decides on a call before it runs. Default: it runs.
    fn before_call(&self, request: &CallRequest<'_>) -> Decision {
        let _ = request;
        Decision::Run
    }

    /// Reads the result of a call, including an external one, before the model does. Default: unchanged.
    fn after_call(&self, step: &AgentStep) -> AfterCall {
        let _ = step;
        AfterCall::Keep
    }

    /// Records a step as in the history: each call once, with any outcome, also at the end of a dropped turn.
    /// Default: nothing. It may use the agent of the turn.
    fn record(&self, step: &AgentStep) {
        let _ = step;
    }
}

impl<H: Hook + ?Sized> Hook for Arc<H> {
    fn before_call(&self, request: &CallRequest<'_>) -> Decision {
        (**self).before_call(request)
    }

    fn after_call(&self, step: &AgentStep) -> AfterCall {
        (**self).after_call(step)
    }

    fn record(&self, step: &AgentStep) {
        (**self).record(step);
    }
}

/// A function as a [`Hook::before_call`].
pub(super) struct BeforeCall<F>(pub F);

impl<F: Fn(&CallRequest<'_>) -> Decision + Send + Sync> Hook for BeforeCall<F> {
    fn before_call(&self, request: &CallRequest<'_>) -> Decision {
        (self.0)(request)
    }
}

/// A function as a [`Hook::after_call`].
pub(super) struct AfterCallFn<F>(pub F);

impl<F: Fn(&AgentStep) -> AfterCall + Send + Sync> Hook for AfterCallFn<F> {
    fn after_call(&self, step: &AgentStep) -> AfterCall {
        (self.0)(step)
    }
}
