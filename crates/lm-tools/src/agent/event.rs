//! Events of an agent's turn.

use super::{AgentReply, ApprovalRequest};
use crate::steps::AgentStep;
use crate::tool_error::ToolError;
use lm_conversation::{ConversationEvent, Reply};
use lm_template::{ToolCall, Value};
use std::time::Duration;

/// An event of a turn.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AgentEvent {
    /// Further text of the model's reply, never empty.
    Text(String),
    /// Further text of its reasoning, never empty.
    Reasoning(String),
    /// The model has started a call.
    ToolCallStarted {
        /// Index of the call in the reply, from 0.
        index: usize,
        /// The tool, if the model names it before the arguments.
        name: Option<String>,
        /// Id of the call, if the model writes one before the arguments.
        id: Option<String>,
    },
    /// Further text of a call's arguments as JSON.
    ToolCallArguments {
        /// Index of the call in the reply.
        index: usize,
        /// The text: the fragments of a call concatenate to the text of its arguments.
        fragment: String,
    },
    /// A call is complete. It runs when the reply has ended and the hooks have allowed it.
    ToolCall(ToolCall),
    /// A hook asks for the approval of a call: the turn waits for the answer.
    Approval(ApprovalRequest),
    /// A tool reports its progress: [`CallContext::progress`](crate::CallContext::progress).
    ToolProgress {
        /// Index of the call in the reply.
        index: usize,
        /// A text, or JSON in a form defined by the tool.
        progress: Value,
    },
    /// An attempt of a call failed and is retried: [`RetryPolicy`](crate::RetryPolicy).
    ToolRetry {
        /// Index of the call in the reply.
        index: usize,
        /// Number of the attempt that failed, from 1.
        attempt: u32,
        /// Its error.
        error: ToolError,
        /// Time until the next attempt.
        delay: Duration,
    },
    /// The result of a call: one for each, in the order of the calls. External results are the first events
    /// of their turn.
    ToolResult(AgentStep),
    /// A reply of the model is complete: its message, finish reason and usage.
    ReplyFinished(Reply),
    /// Any other event of the conversation: progress of the prefill, turns omitted from the prompt, log
    /// probabilities, text of other channels.
    Conversation(ConversationEvent),
    /// The turn is over; the last event.
    Finished(AgentReply),
}

impl From<ConversationEvent> for AgentEvent {
    fn from(event: ConversationEvent) -> Self {
        match event {
            ConversationEvent::Text(text) => Self::Text(text),
            ConversationEvent::Reasoning(text) => Self::Reasoning(text),
            ConversationEvent::ToolCallStarted { index, name, id } => {
                Self::ToolCallStarted { index, name, id }
            }
            ConversationEvent::ToolCallArguments { index, fragment } => {
                Self::ToolCallArguments { index, fragment }
            }
            ConversationEvent::ToolCall(call) => Self::ToolCall(call),
            ConversationEvent::Finished(reply) => Self::ReplyFinished(reply),
            other => Self::Conversation(other),
        }
    }
}
