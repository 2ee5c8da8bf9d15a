//! What a turn of an agent yields.

use lm_conversation::{ConversationEvent, Finished};
use lm_template::{Message, ToolCall};

/// One thing that happens in a turn.
#[derive(Clone, Debug)]
pub enum AgentEvent {
    /// From the model: text, reasoning, calls, and the end of each of its replies.
    Conversation(ConversationEvent),
    /// The result of a call, by its id.
    ToolResult(Message),
    /// The answer; the last event.
    Finished(AgentReply),
}

/// The end of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentReply {
    /// The model's answer.
    pub message: Message,
    /// The calls of the turn with their results, in order.
    pub steps: Vec<AgentStep>,
    /// How each reply of the model ended and what it cost, the answer's last.
    pub finished: Vec<Finished>,
}

/// One call of a tool and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentStep {
    /// What the model asked for.
    pub call: ToolCall,
    /// The tool message it was given.
    pub result: Message,
}
