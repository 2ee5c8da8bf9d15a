//! Start of a conversation.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::message::Message;
use crate::tool_spec::ToolSpec;

/// Start of a conversation: first messages, tools, and further template variables.
///
/// ```
/// use lm_template::Preface;
/// use serde_json::json;
///
/// let preface: Preface = serde_json::from_value(json!({
///     "messages": [{"role": "system", "content": "You are terse."}],
///     "extra_context": {"enable_thinking": false},
/// }))?;
/// assert_eq!(preface.messages.len(), 1);
/// assert!(preface.tools.is_empty());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Preface {
    /// First messages: a system prompt, examples, an earlier history. In JSON: one message, an array, or
    /// text.
    #[serde(deserialize_with = "messages")]
    pub messages: Vec<Message>,
    /// Tools that the model may call.
    #[serde(deserialize_with = "or_default")]
    pub tools: Vec<ToolSpec>,
    /// Further template variables, such as `enable_thinking`.
    #[serde(deserialize_with = "or_default")]
    pub extra_context: Map<String, Value>,
}

fn messages<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Message>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(Vec::new()),
        value => crate::message::messages_from_json(value).map_err(serde::de::Error::custom),
    }
}

fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
