//! Events of an agent's turn.

use lm_conversation::{ConversationEvent, Finished};
use lm_template::{Message, ToolCall};

/// An event of a turn.
#[derive(Clone, Debug)]
pub enum AgentEvent {
    /// Model output: text, reasoning, calls, and the end of each of its replies.
    Conversation(ConversationEvent),
    /// The result of a call, identified by the call's id.
    ToolResult(Message),
    /// The answer; the last event.
    Finished(AgentReply),
}

/// Result of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentReply {
    /// The model's answer.
    pub message: Message,
    /// The calls of the turn and their results, in order.
    pub steps: Vec<AgentStep>,
    /// Finish reason and usage of each reply of the model, the answer's last.
    pub finished: Vec<Finished>,
}

/// A tool call and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentStep {
    /// The model's call.
    pub call: ToolCall,
    /// The tool message with the result.
    pub result: Message,
}
