//! What a turn gives.

use lm_processors::Relaxed;
use lm_session::Finished;
use lm_template::{Content, Message, Polyfill, ToolCall, Value};
use serde_json::json;

/// The model's whole answer to a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The assistant's message, as it stands in the history. Its calls have ids.
    pub message: Message,
    /// Why it ended, and what it took.
    pub finish: Finished,
    /// Keywords of the tools' and the answer's schemas that were not enforced while it was written. Calls and answers are
    /// validated against them when they are complete, and sampled again when they do not fit.
    pub relaxed: Vec<Relaxed>,
    /// How often it was sampled again, from a call or an answer on that did not fit. Tokens thrown away are not in
    /// [`Finished::usage`].
    pub resampled: usize,
    /// What was changed in the conversation because the template lacks it.
    pub polyfills: Vec<Polyfill>,
}

impl Reply {
    /// The text of the answer; empty beside tool calls only.
    pub fn text(&self) -> String {
        self.message.content.text()
    }

    /// The tools the model calls, in order.
    pub fn tool_calls(&self) -> &[ToolCall] {
        &self.message.tool_calls
    }

    /// The message as JSON with its content as a list of parts, as LiteRT-LM writes it.
    pub fn to_json(&self) -> Value {
        let mut message = self.message.to_json();
        if let (Some(message), Content::Text(text)) = (message.as_object_mut(), &self.message.content) {
            message.insert("content".to_owned(), json!([{"type": "text", "text": text}]));
        }
        message
    }
}

/// A piece of a turn, as it comes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "the large one comes once a turn")]
pub enum ConversationEvent {
    /// More text of the answer, never empty.
    Text(String),
    /// More of the reasoning, never empty.
    Reasoning(String),
    /// The model has begun to call a tool.
    ToolCallStarted {
        /// The call's number within the reply, from 0.
        index: usize,
        /// The tool, when the model names it before the arguments.
        name: Option<String>,
    },
    /// More of a call's arguments, as the model wrote them.
    ToolCallArguments {
        /// The call's number within the reply.
        index: usize,
        /// The text.
        fragment: String,
    },
    /// A call is complete.
    ToolCall(ToolCall),
    /// The turn is over and stands in the history.
    Finished(Reply),
}

impl ConversationEvent {
    /// The event as a chunk of a message in the form of LiteRT-LM's stream: a message with what is new, and an empty
    /// one at the end. Nothing for the steps of a call, which come whole there.
    pub fn to_json(&self) -> Option<Value> {
        match self {
            Self::Text(text) => {
                Some(json!({"role": "assistant", "content": [{"type": "text", "text": text}]}))
            }
            Self::Reasoning(text) => Some(json!({"role": "assistant", "channels": {"reasoning": text}})),
            Self::ToolCall(call) => Some(json!({"role": "assistant", "tool_calls": [call]})),
            Self::Finished(_) => Some(json!({})),
            Self::ToolCallStarted { .. } | Self::ToolCallArguments { .. } => None,
        }
    }
}
