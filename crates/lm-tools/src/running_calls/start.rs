//! Start of calls.

use super::RunningCalls;
use crate::execution::not_run;
use crate::invocation::Invocation;
use crate::toolset::Toolset;
use lm_conversation::CancelHandle;
use lm_template::{Message, ToolCall};
use std::time::Instant;

impl Toolset {
    /// Executes a call and returns its tool message, with the call's id and name.
    ///
    /// A text result is the message's text, an object its JSON; other values become text in JSON syntax. This
    /// never fails: for an unknown name, invalid arguments, a tool's error or panic, or a passed time limit,
    /// the result is `{"tool_name": …, "error": …}`, which the model can read. (A panic in a program built
    /// with `panic = "abort"` aborts the program.)
    pub fn call(&self, call: &ToolCall) -> Message {
        let result = self.start(vec![call.clone()], &CancelHandle::new(), None).next();
        result.unwrap_or_else(|| not_run(call))
    }

    /// Starts the calls of a reply. Each has one result, in their order: see [`RunningCalls`]. After
    /// `cancel`, calls that did not begin are not run; running calls see it in their
    /// [`CallContext`](crate::CallContext), and are abandoned after
    /// [`CallLimits::cancel_grace`](crate::CallLimits::cancel_grace). At `deadline` they are abandoned at
    /// once.
    pub fn start(
        &self,
        calls: Vec<ToolCall>,
        cancel: &CancelHandle,
        deadline: Option<Instant>,
    ) -> RunningCalls {
        RunningCalls::new(self, calls, cancel, deadline)
    }

    /// Executes a call in LangChain's format; see [`call`](Self::call).
    pub fn invoke(&self, invocation: &Invocation) -> Message {
        self.call(&ToolCall::from(invocation))
    }
}
