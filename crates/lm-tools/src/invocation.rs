//! Tool calls in LangChain's format.

use lm_template::{Map, Message, ToolCall, Value};
use serde::{Deserialize, Serialize};

/// A tool call as `{"name", "args", "id", "type": "tool_call"}`, the format of LangChain's
/// `AIMessage.tool_calls`.
///
/// ```
/// use lm_tools::{Invocation, Message, ToolCall, invocations};
/// use serde_json::json;
///
/// let call = ToolCall::from_json(json!({"name": "multiply", "arguments": {"a": 3, "b": 2}, "id": "call_0"}))?;
/// let calls = invocations(&Message::tool_calls(vec![call]));
/// let expected = json!([{"name": "multiply", "args": {"a": 3, "b": 2}, "id": "call_0", "type": "tool_call"}]);
/// assert_eq!(serde_json::to_value(&calls)?, expected);
/// assert_eq!(serde_json::from_value::<Vec<Invocation>>(expected)?, calls);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Invocation {
    /// The tool's name.
    pub name: String,
    /// The arguments by name.
    pub args: Map<String, Value>,
    /// Links the call to its result.
    #[serde(default)]
    pub id: Option<String>,
    /// Always `tool_call`; optional in JSON input.
    #[serde(rename = "type", default)]
    pub kind: InvocationKind,
}

/// The `type` of an [`Invocation`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvocationKind {
    /// A tool call.
    #[default]
    ToolCall,
}

/// Converts the calls of a message to LangChain's format, in order.
pub fn invocations(message: &Message) -> Vec<Invocation> {
    message.tool_calls.iter().map(Invocation::from).collect()
}

impl From<&ToolCall> for Invocation {
    fn from(call: &ToolCall) -> Self {
        Self {
            name: call.name.clone(),
            args: call.arguments.clone(),
            id: call.id.clone(),
            kind: InvocationKind::ToolCall,
        }
    }
}

impl From<&Invocation> for ToolCall {
    fn from(invocation: &Invocation) -> Self {
        let mut call = Self::new(invocation.name.as_str(), invocation.args.clone());
        call.id = invocation.id.clone();
        call
    }
}
