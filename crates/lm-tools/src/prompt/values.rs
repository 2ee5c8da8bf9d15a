//! Values of a prompt's placeholders.

use crate::steps::{AgentStep, messages_of};
use lm_template::Message;
use std::collections::BTreeMap;

/// Values of a [`ChatPrompt`](super::ChatPrompt)'s placeholders: texts and lists of messages, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptValues {
    texts: BTreeMap<String, String>,
    messages: BTreeMap<String, Vec<Message>>,
}

impl PromptValues {
    /// Creates an empty set of values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a text.
    #[must_use]
    pub fn text(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.texts.insert(name.into(), text.into());
        self
    }

    /// Sets a list of messages, such as `chat_history`.
    #[must_use]
    pub fn messages(mut self, name: impl Into<String>, messages: impl Into<Vec<Message>>) -> Self {
        self.messages.insert(name.into(), messages.into());
        self
    }

    /// Sets a list of messages to those of steps, such as `agent_scratchpad`: for each round the calls, and a
    /// message for each result.
    #[must_use]
    pub fn steps(self, name: impl Into<String>, steps: &[AgentStep]) -> Self {
        self.messages(name, messages_of(steps))
    }

    /// Adds the values of `others` that this set lacks.
    pub(super) fn or(mut self, others: &Self) -> Self {
        for (name, text) in &others.texts {
            self.texts.entry(name.clone()).or_insert_with(|| text.clone());
        }
        for (name, messages) in &others.messages {
            self.messages.entry(name.clone()).or_insert_with(|| messages.clone());
        }
        self
    }

    pub(super) fn text_of(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str)
    }

    pub(super) fn messages_of(&self, name: &str) -> Option<&[Message]> {
        self.messages.get(name).map(Vec::as_slice)
    }
}
