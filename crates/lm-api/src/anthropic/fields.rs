//! Fields of Anthropic's messages.

use crate::chat_completions::MESSAGES;
use crate::request::FieldNames;
use crate::request_body::{BOOLEAN, BodyField, MODEL, OBJECT, OBJECTS, POSITIVE, RequestBody, STOP};
use crate::sampling::SAMPLING;

/// Names of the fields.
pub(super) const NAMES: FieldNames = FieldNames {
    messages: "messages",
    tools: "tools",
    tool_name: "name",
    tool_schema: "input_schema",
    tool_choice: "tool_choice",
    format: "output_config.format",
    max_output_tokens: "max_tokens",
    max_reasoning_tokens: "thinking",
    stop: "stop_sequences",
};

/// Body of a message.
pub(super) const MESSAGE: RequestBody = RequestBody {
    name: "MessageRequest",
    fields: FIELDS,
    required: &[&["messages"], &["max_tokens"]],
    example: r#"{"messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 32}"#,
};

/// Body of a count of tokens.
pub(super) const COUNT: RequestBody = RequestBody {
    name: "MessageCountRequest",
    fields: FIELDS,
    required: &[&["messages"]],
    example: r#"{"messages": [{"role": "user", "content": "Hello!"}]}"#,
};

const FIELDS: &[&[BodyField]] = &[&[MODEL], OWN, SAMPLING];

const SYSTEM: &str = r#"{"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}]}"#;
const CHOICE: &str = r#"{"type": "object", "required": ["type"], "properties": {
    "type": {"enum": ["auto", "any", "tool", "none"]}, "disable_parallel_tool_use": {"type": ["boolean", "null"]}
}}"#;
const THINKING: &str = r#"{"type": "object", "required": ["type"], "properties": {
    "type": {"enum": ["enabled", "disabled", "adaptive"]}, "budget_tokens": {"description": "Maximum number of reasoning tokens."}
}}"#;

const OWN: &[BodyField] = &[
    BodyField::new(
        "messages",
        MESSAGES,
        "Messages of the conversation, oldest first; the last may begin the reply.",
    ),
    BodyField::new("system", SYSTEM, "Text, or an array of its blocks, before the messages."),
    BodyField::new("max_tokens", POSITIVE, "Maximum number of output tokens."),
    BodyField::new("stop_sequences", STOP, "Stop sequences."),
    BodyField::new("tools", OBJECTS, "Tools that the model may call."),
    BodyField::new("tool_choice", CHOICE, "Choice among the tools."),
    BodyField::new("thinking", THINKING, "Reasoning; the model decides if absent."),
    BodyField::new("output_config", OBJECT, "Format of the answer, as `format`."),
    BodyField::new("output_format", OBJECT, "Older name of `output_config.format`."),
    BodyField::new("stream", BOOLEAN, "Streams the response as server-sent events; false if absent."),
];
