//! Fields of a chat completion.

use crate::request::FieldNames;
use crate::request_body::{
    BOOLEAN, BodyField, COUNT, MODEL, OBJECT, OBJECTS, POSITIVE, RequestBody, STOP, TEXT,
};
use crate::sampling::SAMPLING;

/// Names of the fields.
pub(crate) const NAMES: FieldNames = FieldNames {
    messages: "messages",
    tools: "tools",
    tool_name: "function.name",
    tool_schema: "function.parameters",
    tool_choice: "tool_choice",
    format: "response_format",
    max_output_tokens: "max_completion_tokens",
    max_reasoning_tokens: "max_reasoning_tokens",
    stop: "stop",
};

/// Body of a chat completion.
pub(super) const BODY: RequestBody = RequestBody {
    name: "ChatCompletionRequest",
    fields: &[&[MODEL], CONVERSATION, LENGTH, SAMPLING, FORMATS, STREAM, UNSUPPORTED],
    required: &[&["messages"]],
    example: r#"{"messages": [{"role": "user", "content": "Hello!"}], "max_completion_tokens": 32}"#,
};

/// Schema of `messages`.
pub(crate) const MESSAGES: &str = r#"{"type": "array", "minItems": 1, "items": {
    "type": "object",
    "required": ["role"],
    "properties": {"role": {"type": "string"}, "content": {"description": "Text, or an array of parts: `text`, `image_url` with a data URL, `input_audio` with base64."}}
}}"#;

/// Schema of `tool_choice`.
pub(crate) const TOOL_CHOICE: &str =
    r#"{"anyOf": [{"enum": ["auto", "required", "none"]}, {"type": "object"}]}"#;

/// Schema of `reasoning_effort`.
const EFFORT: &str = r#"{"enum": ["none", "minimal", "low", "medium", "high", "xhigh", "max"]}"#;

const CONVERSATION: &[BodyField] = &[
    BodyField::new("messages", MESSAGES, "Messages of the conversation, oldest first."),
    BodyField::new("tools", OBJECTS, "Functions that the model may call."),
    BodyField::new("tool_choice", TOOL_CHOICE, "Choice among the tools, or a function that must be called."),
    BodyField::new("parallel_tool_calls", BOOLEAN, "Permits several calls in a reply; true if absent."),
    BodyField::new(
        "reasoning_effort",
        EFFORT,
        "Effort of reasoning, for templates that read it; `none` is off.",
    ),
    BodyField::new("max_reasoning_tokens", COUNT, "Maximum number of reasoning tokens."),
    BodyField::new("chat_template_kwargs", OBJECT, "Variables of the chat template."),
    BodyField::new("continue_final_message", BOOLEAN, "The last message is the beginning of the reply."),
    BodyField::new("add_generation_prompt", BOOLEAN, "The opposite of `continue_final_message`."),
    BodyField::new("format", TEXT, "Name of the dialect that replaces the model's."),
    BodyField::new("logprobs", BOOLEAN, "Returns the log probabilities of the output tokens."),
    BodyField::new(
        "top_logprobs",
        COUNT,
        "Number of most probable tokens at each position; needs `logprobs`.",
    ),
];

const LENGTH: &[BodyField] = &[
    BodyField::new("max_completion_tokens", POSITIVE, "Maximum number of output tokens."),
    BodyField::new("max_tokens", POSITIVE, "Older name of `max_completion_tokens`."),
    BodyField::new("min_tokens", COUNT, "Number of tokens before which no token ends the reply."),
    BodyField::new("stop", STOP, "Stop sequences."),
    BodyField::new("ignore_eos", BOOLEAN, "Excludes the tokens that end a reply, as benchmarks do."),
    BodyField::new("n", POSITIVE, "Number of choices; 1 if absent."),
];

/// Formats of the answer; a request has at most one.
pub(crate) const FORMATS: &[BodyField] = &[
    BodyField::new(
        "response_format",
        r#"{"type": "object", "required": ["type"], "properties": {
            "type": {"enum": ["text", "json_object", "json_schema"]},
            "json_schema": {"properties": {"schema": {"description": "A JSON Schema."}}}
        }}"#,
        "Format of the answer.",
    ),
    BodyField::new(
        "structured_outputs",
        OBJECT,
        "Format of the answer by one of `json`, `json_object`, `regex`, `choice` and `grammar`.",
    ),
    BodyField::new(
        "guided_json",
        r#"{"type": ["object", "boolean", "string"]}"#,
        "JSON Schema of the answer.",
    ),
    BodyField::new("guided_regex", TEXT, "Regular expression of the answer."),
    BodyField::new(
        "guided_choice",
        r#"{"type": "array", "minItems": 1, "items": {"type": "string"}}"#,
        "Texts of which the answer is one.",
    ),
    BodyField::new("guided_grammar", TEXT, "Grammar of the answer in llguidance's Lark dialect."),
];

/// Streaming of a response.
pub(crate) const STREAM: &[BodyField] = &[
    BodyField::new("stream", BOOLEAN, "Streams the response as server-sent events; false if absent."),
    BodyField::new(
        "stream_options",
        r#"{"type": "object", "properties": {"include_usage": {"type": "boolean"}}}"#,
        "Options of a stream; `include_usage` adds a last chunk with the usage.",
    ),
];

const UNSUPPORTED: &[BodyField] = &[
    BodyField::unsupported("audio", &[]),
    BodyField::unsupported("best_of", &["1"]),
    BodyField::unsupported("echo", &["false"]),
    BodyField::unsupported("function_call", &[]),
    BodyField::unsupported("functions", &[]),
    BodyField::unsupported("grammar", &[]),
    BodyField::unsupported("modalities", &["[]", r#"["text"]"#]),
    BodyField::unsupported("prompt_logprobs", &[]),
    BodyField::unsupported("web_search_options", &[]),
];
