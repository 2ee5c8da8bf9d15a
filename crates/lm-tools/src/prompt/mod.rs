//! Prompts with placeholders, as LangChain's `ChatPromptTemplate`.

mod text;
mod values;

pub(crate) use text::PromptText;
pub use values::PromptValues;

use crate::error::{Error, Result};
use lm_template::{Message, Role};

/// Placeholder of a turn's input.
pub(crate) const INPUT: &str = "input";
/// Placeholder of the turns before.
pub(crate) const CHAT_HISTORY: &str = "chat_history";
/// Placeholder of the calls and results of the running turn.
pub(crate) const AGENT_SCRATCHPAD: &str = "agent_scratchpad";

/// A prompt with placeholders for texts (`{input}`) and for lists of messages, as LangChain's
/// `ChatPromptTemplate`. [`AgentBuilder::prompt`](crate::AgentBuilder::prompt) gives it to an agent;
/// [`format`](Self::format) makes the messages of a single model call.
///
/// ```
/// use lm_tools::{ChatPrompt, Message, PromptValues};
///
/// let prompt = ChatPrompt::new()
///     .system("You are a helpful assistant of {company}.")?
///     .optional_messages("chat_history")
///     .user("{input}")?
///     .messages("agent_scratchpad")
///     .partial("company", "Acme");
/// let values = PromptValues::new().text("input", "Hi!").steps("agent_scratchpad", &[]);
/// let expected = [Message::system("You are a helpful assistant of Acme."), Message::user("Hi!")];
/// assert_eq!(prompt.format(&values)?, expected);
/// # Ok::<(), lm_tools::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatPrompt {
    parts: Vec<PromptPart>,
    partial: PromptValues,
}

/// A part of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PromptPart {
    /// A message.
    Message { role: Role, text: PromptText },
    /// Messages with a name.
    Messages { name: String, is_optional: bool },
}

impl ChatPrompt {
    /// Creates a prompt without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the prompt of LangChain's agents with tool calls (`hwchase17/openai-functions-agent`): the
    /// system message `You are a helpful assistant`, optionally `chat_history`, `{input}` as the user's
    /// message, `agent_scratchpad`.
    ///
    /// ```
    /// let prompt = lm_tools::ChatPrompt::tool_calling_agent();
    /// assert_eq!(prompt.variables(), ["chat_history", "input", "agent_scratchpad"]);
    /// ```
    pub fn tool_calling_agent() -> Self {
        let system = PromptText::variable("instructions");
        let values = PromptValues::new().text("instructions", "You are a helpful assistant");
        Self::new()
            .part(Role::System, system.bind(&values))
            .optional_messages(CHAT_HISTORY)
            .part(Role::User, PromptText::variable(INPUT))
            .messages(AGENT_SCRATCHPAD)
    }

    /// Adds a message of a role, whose text has placeholders in the format of Python's f-strings: `{name}`;
    /// `{{` and `}}` are braces.
    ///
    /// # Errors
    /// [`Error::InvalidPrompt`] for any other brace.
    pub fn message(self, role: Role, text: &str) -> Result<Self> {
        Ok(self.part(role, PromptText::parse(text)?))
    }

    /// Adds a system message; see [`message`](Self::message).
    ///
    /// # Errors
    /// As [`message`](Self::message).
    pub fn system(self, text: &str) -> Result<Self> {
        self.message(Role::System, text)
    }

    /// Adds a user's message; see [`message`](Self::message).
    ///
    /// # Errors
    /// As [`message`](Self::message).
    pub fn user(self, text: &str) -> Result<Self> {
        self.message(Role::User, text)
    }

    /// Adds an assistant's message; see [`message`](Self::message).
    ///
    /// # Errors
    /// As [`message`](Self::message).
    pub fn assistant(self, text: &str) -> Result<Self> {
        self.message(Role::Assistant, text)
    }

    /// Adds a placeholder for a list of messages, which must have a value.
    #[must_use]
    pub fn messages(mut self, name: impl Into<String>) -> Self {
        self.parts.push(PromptPart::Messages { name: name.into(), is_optional: false });
        self
    }

    /// Adds a placeholder for a list of messages; nothing takes its place without a value.
    #[must_use]
    pub fn optional_messages(mut self, name: impl Into<String>) -> Self {
        self.parts.push(PromptPart::Messages { name: name.into(), is_optional: true });
        self
    }

    /// Sets the text of a placeholder in all uses of the prompt.
    #[must_use]
    pub fn partial(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.partial = self.partial.text(name, text);
        self
    }

    /// Names of the placeholders, in order, without those of [`partial`](Self::partial).
    pub fn variables(&self) -> Vec<&str> {
        let names = self.parts.iter().flat_map(|part| match part {
            PromptPart::Message { text, .. } => text.variables().collect(),
            PromptPart::Messages { name, .. } => vec![name.as_str()],
        });
        let mut variables = Vec::new();
        for name in names.filter(|name| self.partial.text_of(name).is_none()) {
            if !variables.contains(&name) {
                variables.push(name);
            }
        }
        variables
    }

    /// Returns the messages of the prompt with these values.
    ///
    /// # Errors
    /// [`Error::MissingPromptValue`] for a placeholder without one, unless it is optional.
    pub fn format(&self, values: &PromptValues) -> Result<Vec<Message>> {
        let values = values.clone().or(&self.partial);
        let messages = |part: &PromptPart| match part {
            PromptPart::Message { role, text } => {
                Ok(vec![Message::new(role.clone(), text.bind(&values).finish()?)])
            }
            PromptPart::Messages { name, is_optional } => match values.messages_of(name) {
                Some(messages) => Ok(messages.to_vec()),
                None if *is_optional => Ok(Vec::new()),
                None => Err(Error::MissingPromptValue { name: name.clone() }),
            },
        };
        Ok(self.parts.iter().map(messages).collect::<Result<Vec<_>>>()?.concat())
    }

    fn part(mut self, role: Role, text: PromptText) -> Self {
        self.parts.push(PromptPart::Message { role, text });
        self
    }

    /// Parts, with the values of [`partial`](Self::partial).
    pub(crate) fn into_parts(self) -> Vec<PromptPart> {
        let Self { parts, partial } = self;
        let bound = |part| match part {
            PromptPart::Message { role, text } => PromptPart::Message { role, text: text.bind(&partial) },
            part @ PromptPart::Messages { .. } => part,
        };
        parts.into_iter().map(bound).collect()
    }
}
