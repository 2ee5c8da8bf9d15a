//! Fields of a request of the Responses API.

use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::builtin_tools::BUILTIN_TOOLS;
use crate::chat_completions::{NAMES as CHAT_NAMES, ToolFields};
use crate::fields::token_limit;
use crate::request::{FieldNames, Truncation};
use crate::request_body::RequestBody;
use crate::sampling::SamplingFields;
use crate::unsupported_fields::{MESSAGES, OUTPUT, SAMPLING};

/// Names of the fields.
pub(super) const NAMES: FieldNames = FieldNames {
    messages: "input",
    tool_name: "name",
    tool_schema: "parameters",
    format: "text.format",
    max_output_tokens: "max_output_tokens",
    builtin_tools: BUILTIN_TOOLS,
    ..CHAT_NAMES
};

/// Body of a response.
pub(super) const BODY: RequestBody = RequestBody {
    name: "ResponseRequest",
    groups: &[Body::json_schema, ToolFields::json_schema, SamplingFields::json_schema],
    unsupported: &[
        &[
            ("context_management", &["[]"]),
            ("enable_response_messages", &["false"]),
            ("image", &[]),
            ("max_completion_tokens", &[]),
            ("max_tokens", &[]),
            ("max_tool_calls", &[]),
            ("n_predict", &[]),
            ("num_predict", &[]),
            ("previous_input_messages", &["[]"]),
            ("prompt", &[]),
        ],
        SAMPLING,
        OUTPUT,
        MESSAGES,
    ],
    example: r#"{"input": "Hello!", "max_output_tokens": 32}"#,
};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Body {
    /// Name or alias of a model; the server's first model if absent.
    pub model: Option<String>,
    /// Text of the user, or items: messages, calls, their results, reasoning. It may be absent after a
    /// conversation or an earlier response.
    #[schemars(extend("type" = ["string", "array", "null"], "items" = {"type": "object"}))]
    pub input: Option<Value>,
    /// Message of the system before all others.
    pub instructions: Option<String>,
    /// Id of the stored response that this one continues.
    pub previous_response_id: Option<String>,
    /// Conversation that the response continues and is added to: its id, or an object with it.
    #[schemars(extend("type" = ["string", "object", "null"]))]
    pub conversation: Option<Value>,
    /// Answers at once, and runs the response in the background; false if absent.
    pub background: Option<bool>,
    /// Stores the response; true if absent.
    pub store: Option<bool>,
    /// Maximum number of output tokens; -1 is no limit.
    #[serde(default, deserialize_with = "token_limit")]
    #[schemars(with = "Option<i64>", range(min = -1), extend("not" = {"const": 0}))]
    pub max_output_tokens: Option<NonZeroUsize>,
    /// Excludes the tokens that end a reply, as benchmarks do; false if absent.
    pub ignore_eos: Option<bool>,
    /// Effort of reasoning, as `effort`.
    pub reasoning: Option<Map<String, Value>>,
    /// Maximum number of reasoning tokens.
    pub max_reasoning_tokens: Option<usize>,
    /// Format of the answer, as `format`.
    pub text: Option<Map<String, Value>>,
    /// Streams the response as server-sent events; false if absent.
    pub stream: Option<bool>,
    /// Further data of the response: `message.output_text.logprobs` for log probabilities; others are
    /// ignored.
    pub include: Option<Vec<String>>,
    /// Number of most probable tokens at each position; log probabilities need it or `include`.
    pub top_logprobs: Option<usize>,
    /// Leaves out the oldest items of a conversation that does not fit the context (`auto`); `disabled` if
    /// absent.
    pub truncation: Option<Truncation>,
    /// Repeated in the response.
    #[serde(rename = "metadata")]
    _metadata: Option<Value>,
    /// Repeated in the response.
    #[serde(rename = "user")]
    _user: Option<Value>,
}
