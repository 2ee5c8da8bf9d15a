//! Fields of a request of the Responses API.

use crate::chat_completions::TOOL_CHOICE;
use crate::request::FieldNames;
use crate::request_body::{BOOLEAN, BodyField, COUNT, MODEL, OBJECT, OBJECTS, POSITIVE, RequestBody, TEXT};
use crate::sampling::SAMPLING;

/// Names of the fields.
pub(super) const NAMES: FieldNames = FieldNames {
    messages: "input",
    tools: "tools",
    tool_name: "name",
    tool_schema: "parameters",
    tool_choice: "tool_choice",
    format: "text.format",
    max_output_tokens: "max_output_tokens",
    max_reasoning_tokens: "max_reasoning_tokens",
    stop: "stop",
};

/// Body of a response.
pub(super) const BODY: RequestBody = RequestBody {
    name: "ResponseRequest",
    fields: &[&[MODEL], OWN, SAMPLING, UNSUPPORTED],
    required: &[&["input"]],
    example: r#"{"input": "Hello!", "max_output_tokens": 32}"#,
};

const INPUT: &str = r#"{"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}]}"#;

const OWN: &[BodyField] = &[
    BodyField::new("input", INPUT, "Text of the user, or items: messages, calls, their results, reasoning."),
    BodyField::new("instructions", TEXT, "Message of the system before all others."),
    BodyField::new("previous_response_id", TEXT, "Id of the stored response that this one continues."),
    BodyField::new("store", BOOLEAN, "Stores the response; true if absent."),
    BodyField::new("max_output_tokens", POSITIVE, "Maximum number of output tokens."),
    BodyField::new("tools", OBJECTS, "Functions that the model may call."),
    BodyField::new("tool_choice", TOOL_CHOICE, "Choice among the tools, or a function that must be called."),
    BodyField::new("parallel_tool_calls", BOOLEAN, "Permits several calls in a reply; true if absent."),
    BodyField::new("reasoning", OBJECT, "Effort of reasoning, as `effort`."),
    BodyField::new("max_reasoning_tokens", COUNT, "Maximum number of reasoning tokens."),
    BodyField::new("text", OBJECT, "Format of the answer, as `format`."),
    BodyField::new("stream", BOOLEAN, "Streams the response as server-sent events; false if absent."),
    BodyField::new("metadata", "{}", "Repeated in the response."),
    BodyField::new("user", "{}", "Repeated in the response."),
];

const UNSUPPORTED: &[BodyField] = &[
    BodyField::unsupported("background", &["false"]),
    BodyField::unsupported("conversation", &[]),
    BodyField::unsupported("max_tool_calls", &[]),
    BodyField::unsupported("prompt", &[]),
    BodyField::unsupported("top_logprobs", &["0"]),
    BodyField::unsupported("truncation", &[r#""disabled""#]),
];
