//! Fields of Anthropic's messages.

use std::num::NonZeroUsize;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::chat_completions::NAMES as CHAT_NAMES;
use crate::fields::{StopSequences, token_limit};
use crate::messages;
use crate::request::FieldNames;
use crate::request_body::RequestBody;
use crate::sampling::SamplingFields;
use crate::unsupported_fields::{END, MESSAGES, OUTPUT, SAMPLING};

/// Names of the fields.
pub(super) const NAMES: FieldNames = FieldNames {
    tool_name: "name",
    tool_schema: "input_schema",
    format: "output_config.format",
    max_output_tokens: "max_tokens",
    max_reasoning_tokens: "thinking",
    stop: "stop_sequences",
    ..CHAT_NAMES
};

/// Body of a message.
pub(super) const MESSAGE: RequestBody = RequestBody {
    name: "MessageRequest",
    groups: &[Body::json_schema, SamplingFields::json_schema, Length::json_schema],
    example: r#"{"messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 32}"#,
    ..COUNT
};

/// Body of a count of tokens.
pub(super) const COUNT: RequestBody = RequestBody {
    name: "MessageCountRequest",
    groups: &[Body::json_schema, SamplingFields::json_schema],
    unsupported: &[
        &[
            ("max_completion_tokens", &[]),
            ("max_output_tokens", &[]),
            ("max_reasoning_tokens", &[]),
            ("mcp_servers", &["[]"]),
            ("n_predict", &[]),
            ("num_predict", &[]),
            ("parallel_tool_calls", &["true"]),
            ("thread", &[]),
            ("top_logprobs", &["0"]),
        ],
        SAMPLING,
        OUTPUT,
        END,
        MESSAGES,
    ],
    example: r#"{"messages": [{"role": "user", "content": "Hello!"}]}"#,
};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Body {
    /// Name or alias of a model; the server's first model if absent.
    pub model: Option<String>,
    /// Messages of the conversation, oldest first; the last may begin the reply.
    #[schemars(schema_with = "messages_schema")]
    pub messages: Vec<Value>,
    /// Text, or an array of its blocks, before the messages.
    #[schemars(extend("type" = ["string", "array", "null"], "items" = {"type": "object"}))]
    pub system: Option<Value>,
    /// Maximum number of output tokens; -1 is no limit.
    #[serde(default, deserialize_with = "token_limit")]
    #[schemars(with = "Option<i64>", range(min = -1), extend("not" = {"const": 0}))]
    pub max_tokens: Option<NonZeroUsize>,
    /// Stop sequences.
    pub stop_sequences: Option<StopSequences>,
    /// Tools that the model may call.
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    pub tools: Option<Vec<Value>>,
    /// Choice among the tools.
    #[schemars(extend("type" = ["object", "null"], "required" = ["type"], "properties" = {
        "type": {"enum": ["auto", "any", "tool", "none"]},
        "disable_parallel_tool_use": {"type": ["boolean", "null"]}
    }))]
    pub tool_choice: Option<Value>,
    /// Reasoning; the model decides if absent.
    #[schemars(extend("type" = ["object", "null"], "required" = ["type"], "properties" = {
        "type": {"enum": ["enabled", "disabled", "adaptive"]},
        "budget_tokens": {"description": "Maximum number of reasoning tokens."}
    }))]
    pub thinking: Option<Value>,
    /// Format of the answer, as `format`, and effort of reasoning, as `effort`.
    pub output_config: Option<Map<String, Value>>,
    /// Older name of `output_config.format`.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub output_format: Option<Value>,
    /// Streams the response as server-sent events; false if absent.
    pub stream: Option<bool>,
}

/// Schema of `messages`.
fn messages_schema(_: &mut SchemaGenerator) -> Schema {
    messages::schema_of(&["user", "assistant", "system", "developer"])
}

/// Field that a message needs, and a count does not.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Length {
    /// Maximum number of output tokens.
    #[serde(rename = "max_tokens", deserialize_with = "token_limit")]
    #[schemars(with = "i64", range(min = -1), extend("not" = {"const": 0}))]
    _max_tokens: Option<NonZeroUsize>,
}
