//! A message of a conversation, and its JSON form.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::content::Content;
use crate::error::{Error, Result, json_type};
use crate::json_layout::JsonLayout;
use crate::reasoning_part;
use crate::role::Role;
use crate::tool_call::{ToolCall, expect_object, expect_string};

const KNOWN: [&str; 6] = ["role", "reasoning_content", "content", "tool_calls", "tool_call_id", "name"];

/// A message of a conversation.
///
/// Reading and writing JSON keeps unknown keys and key order. These spellings are normalized: role `model`
/// becomes `assistant`, the assistant's parts of type `thinking` or `reasoning` become `reasoning_content`, a
/// single part becomes a list of one, a bare string in a list of parts becomes a text part, and role
/// `tool_call` (a list of calls as content) becomes an assistant message with `tool_calls`.
///
/// ```
/// use lm_template::Message;
/// use serde_json::json;
///
/// let message = Message::from_json(json!({"role": "user", "content": "Hello", "mood": "curious"}))?;
/// assert_eq!(message.content.text(), "Hello");
/// assert_eq!(message.extra("mood"), Some(&json!("curious")));
/// assert_eq!(message, Message::from_json(message.to_json())?);
/// # Ok::<(), lm_template::Error>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Message {
    /// Role of the author.
    pub role: Role,
    /// Content of the message.
    pub content: Content,
    /// Tool calls of an assistant message, in order.
    pub tool_calls: Vec<ToolCall>,
    /// Id of the call that a tool message answers.
    pub tool_call_id: Option<String>,
    /// Name of the tool or of the author.
    pub name: Option<String>,
    /// Reasoning of an assistant message.
    pub reasoning_content: Option<String>,
    layout: JsonLayout,
}

/// The role, and the other fields that are set.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Message");
        fields.field("role", &self.role).field("content", &self.content);
        if !self.tool_calls.is_empty() {
            fields.field("tool_calls", &self.tool_calls);
        }
        let texts = [
            ("tool_call_id", &self.tool_call_id),
            ("name", &self.name),
            ("reasoning_content", &self.reasoning_content),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                fields.field(name, text);
            }
        }
        if self.layout.unknown().next().is_some() {
            fields.field("others", &self.layout);
        }
        fields.finish()
    }
}

impl Default for Message {
    fn default() -> Self {
        Self::new(Role::User, Content::None)
    }
}

impl Message {
    /// Creates a message of any role.
    pub fn new(role: Role, content: impl Into<Content>) -> Self {
        Self {
            role,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            name: None,
            reasoning_content: None,
            layout: JsonLayout::new(&KNOWN),
        }
    }

    /// Creates a user message.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::new(Role::User, content)
    }

    /// Creates a system message.
    pub fn system(content: impl Into<Content>) -> Self {
        Self::new(Role::System, content)
    }

    /// Creates an assistant message.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self::new(Role::Assistant, content)
    }

    /// Creates an assistant message of tool calls without content.
    pub fn tool_calls(calls: Vec<ToolCall>) -> Self {
        Self { tool_calls: calls, ..Self::new(Role::Assistant, Content::None) }
    }

    /// Creates a tool result; its content is [`Content::of_result`].
    pub fn tool(call_id: Option<&str>, name: impl Into<String>, result: Value) -> Self {
        let content = Content::of_result(result);
        let (tool_call_id, name) = (call_id.map(str::to_owned), Some(name.into()));
        Self { tool_call_id, name, ..Self::new(Role::Tool, content) }
    }

    /// The value of a key without a field.
    pub fn extra(&self, key: &str) -> Option<&Value> {
        self.layout.get(key)
    }

    /// Sets a key without a field; templates see it. Keys with a field are ignored.
    pub fn set_extra(&mut self, key: impl Into<String>, value: Value) {
        self.layout.set(key.into(), value);
    }

    /// Reads a message from JSON.
    ///
    /// # Errors
    /// If `role` is missing, a key has the wrong type, or an image or audio part has no readable source.
    pub fn from_json(value: Value) -> Result<Self> {
        Self::read(value, "message")
    }

    fn read(value: Value, at: &str) -> Result<Self> {
        let (layout, fields) = JsonLayout::split(expect_object(value, at)?, &KNOWN);
        let [role, reasoning, content, calls, call_id, name] = fields;
        let role = role.ok_or_else(|| Error::MissingKey { at: at.to_owned(), key: "role" })?;
        let role = expect_string(role, at, "role")?;
        let optional = |value: Option<Value>, key| match value {
            None | Some(Value::Null) => Ok(None),
            Some(value) => expect_string(value, at, key).map(Some),
        };
        let mut message = Self {
            role: Role::from(role.as_str()),
            content: Content::None,
            tool_calls: read_calls(calls.unwrap_or_default(), &format!("{at}.tool_calls"))?,
            tool_call_id: optional(call_id, "tool_call_id")?,
            name: optional(name, "name")?,
            reasoning_content: optional(reasoning, "reasoning_content")?,
            layout,
        };
        let mut content = content.unwrap_or_default();
        if message.role == Role::Assistant
            && let Some(reasoning) = reasoning_part::take(&mut content)
        {
            message.reasoning_content.get_or_insert(reasoning);
        }
        if role == "tool_call" {
            message.read_calls_as_content(content, &format!("{at}.content"))?;
        } else {
            message.content = Content::read(content, &message.role, &format!("{at}.content"))?;
        }
        Ok(message)
    }

    /// Reads role `tool_call`: the content lists the calls, as JSON or as its text. `tool_calls` takes
    /// precedence over it.
    fn read_calls_as_content(&mut self, content: Value, at: &str) -> Result<()> {
        self.role = Role::Assistant;
        let calls = match content {
            Value::String(text) => serde_json::from_str(&text)
                .map_err(|error| Error::ArgumentsText { at: at.to_owned(), reason: error.to_string() })?,
            other => other,
        };
        let calls = if calls.is_object() { Value::Array(vec![calls]) } else { calls };
        let calls = read_calls(calls, at)?;
        if self.tool_calls.is_empty() {
            self.tool_calls = calls;
        }
        Ok(())
    }

    /// Writes the message as JSON: keys that were read in their order, then added ones.
    pub fn to_json(&self) -> Value {
        let kept =
            |key: &str, value: Option<Value>| value.or_else(|| self.layout.has(key).then_some(Value::Null));
        let text = |value: &Option<String>| value.as_deref().map(Value::from);
        let calls = || Value::Array(self.tool_calls.iter().map(ToolCall::to_json).collect());
        let content = Some(self.content.to_json()).filter(|content| !content.is_null());
        let calls = (!self.tool_calls.is_empty()).then(calls);
        Value::Object(self.layout.fill([
            ("role", Some(self.role.as_str().into())),
            ("reasoning_content", kept("reasoning_content", text(&self.reasoning_content))),
            ("content", kept("content", content)),
            ("tool_calls", calls.or_else(|| self.layout.has("tool_calls").then(|| Value::Array(Vec::new())))),
            ("tool_call_id", kept("tool_call_id", text(&self.tool_call_id))),
            ("name", kept("name", text(&self.name))),
        ]))
    }
}

fn read_calls(value: Value, at: &str) -> Result<Vec<ToolCall>> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(calls) => calls
            .into_iter()
            .enumerate()
            .map(|(i, call)| ToolCall::read(call, &format!("{at}[{i}]")))
            .collect(),
        other => {
            Err(Error::WrongType { at: at.to_owned(), expected: "an array of calls", got: json_type(&other) })
        }
    }
}

/// Reads a message argument: one message, an array of messages, or plain text (a user message).
///
/// # Errors
/// If the value is none of these, or a message cannot be read; the path in the error names the message.
pub fn messages_from_json(value: Value) -> Result<Vec<Message>> {
    match value {
        Value::String(text) => Ok(vec![Message::user(text)]),
        value @ Value::Object(_) => Ok(vec![Message::from_json(value)?]),
        Value::Array(items) => {
            let read = |(index, item)| match item {
                Value::String(text) => Ok(Message::user(text)),
                item => Message::read(item, &format!("messages[{index}]")),
            };
            items.into_iter().enumerate().map(read).collect()
        }
        other => Err(Error::WrongType {
            at: "messages".to_owned(),
            expected: "a message, an array of messages, or text",
            got: json_type(&other),
        }),
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Self::from_json(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
