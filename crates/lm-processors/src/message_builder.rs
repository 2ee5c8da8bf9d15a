//! Assembly of events into a message.

use lm_template::{Content, Message, Value};

use crate::error::{Error, Result};
use crate::event::{CallFault, ProcessorEvent, REASONING};
use crate::parser::{OnMalformed, ParserOptions};

/// Assembles the events of one reply into the assistant's message.
#[derive(Debug, Clone, Default)]
pub struct MessageBuilder {
    text: String,
    reasoning: String,
    /// Texts of other channels, by name.
    channels: Vec<(String, String)>,
    calls: Vec<lm_template::ToolCall>,
    on_malformed: OnMalformed,
    on_unfinished: OnMalformed,
}

impl MessageBuilder {
    /// Creates a builder that treats malformed calls as a parser with these options does.
    pub fn new(options: &ParserOptions) -> Self {
        let ParserOptions { on_malformed, on_unfinished, .. } = *options;
        Self { on_malformed, on_unfinished, ..Self::default() }
    }

    /// Adds the next event.
    ///
    /// # Errors
    /// [`Error::MalformedToolCall`] for an event that reports one, unless the options turn it into text.
    pub fn push(&mut self, event: ProcessorEvent) -> Result<()> {
        match event {
            ProcessorEvent::Text(text) => self.text.push_str(&text),
            ProcessorEvent::Channel { name, text } if name == REASONING => self.reasoning.push_str(&text),
            ProcessorEvent::Channel { name, text } => {
                match self.channels.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, channel)) => channel.push_str(&text),
                    None => self.channels.push((name, text)),
                }
            }
            ProcessorEvent::ToolCall { call, .. } => self.calls.push(call),
            ProcessorEvent::Malformed { fault, text, reason, .. } => {
                let wanted =
                    if fault == CallFault::Unfinished { self.on_unfinished } else { self.on_malformed };
                match wanted {
                    OnMalformed::Error => return Err(Error::MalformedToolCall { text, reason }),
                    OnMalformed::Text => self.text.push_str(&text),
                }
            }
            ProcessorEvent::ToolCallStarted { .. } | ProcessorEvent::ToolCallArguments { .. } => {}
        }
        Ok(())
    }

    /// Returns the message. Without text, its content is empty text, or none if it calls tools. Texts of
    /// channels other than [`REASONING`] are under the key `channels`, by name.
    pub fn finish(self) -> Message {
        let no_content = self.text.is_empty() && !self.calls.is_empty();
        let mut message =
            Message::assistant(if no_content { Content::None } else { Content::Text(self.text) });
        message.tool_calls = self.calls;
        message.reasoning_content = (!self.reasoning.is_empty()).then_some(self.reasoning);
        if !self.channels.is_empty() {
            let texts = self.channels.into_iter().map(|(name, text)| (name, text.into()));
            message.set_extra("channels", Value::Object(texts.collect()));
        }
        message
    }
}
