//! Events put together to a message.

use lm_template::{Content, Message};

use crate::error::{Error, Result};
use crate::event::ProcessorEvent;

/// Puts the events of one reply together to the assistant's message.
#[derive(Debug, Clone, Default)]
pub struct MessageBuilder {
    text: String,
    reasoning: String,
    calls: Vec<lm_template::ToolCall>,
}

impl MessageBuilder {
    /// Takes the next event.
    ///
    /// # Errors
    /// [`Error::MalformedToolCall`] for an event that reports one.
    pub fn push(&mut self, event: ProcessorEvent) -> Result<()> {
        match event {
            ProcessorEvent::Text(text) => self.text.push_str(&text),
            ProcessorEvent::Channel { text, .. } => self.reasoning.push_str(&text),
            ProcessorEvent::ToolCall { call, .. } => self.calls.push(call),
            ProcessorEvent::Malformed { text, error } => {
                return Err(Error::MalformedToolCall { text, reason: error });
            }
            ProcessorEvent::ToolCallStarted { .. } | ProcessorEvent::ToolCallArguments { .. } => {}
        }
        Ok(())
    }

    /// The message. Without text its content is empty text, or none when it calls tools.
    pub fn finish(self) -> Message {
        let no_content = self.text.is_empty() && !self.calls.is_empty();
        let mut message =
            Message::assistant(if no_content { Content::None } else { Content::Text(self.text) });
        message.tool_calls = self.calls;
        message.reasoning_content = (!self.reasoning.is_empty()).then_some(self.reasoning);
        message
    }
}
