//! Fields of Ollama's requests.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::chat_completions::NAMES as CHAT_NAMES;
use crate::embeddings::InputFields;
use crate::fields::StopSequences;
use crate::request::FieldNames;
use crate::request_body::RequestBody;
use crate::sampling::SamplingFields;
use crate::unsupported_fields::{END, OUTPUT, SAMPLING};

/// Names of the fields.
pub(super) const NAMES: FieldNames = FieldNames {
    tool_choice: "tools",
    format: "format",
    max_output_tokens: "options.num_predict",
    max_reasoning_tokens: "think",
    stop: "options.stop",
    ..CHAT_NAMES
};

/// Body of `/api/chat`.
pub(super) const CHAT: RequestBody = RequestBody {
    name: "OllamaChatRequest",
    groups: &[Chat::json_schema, Common::json_schema],
    unsupported: &[UNSUPPORTED, IMAGES, PROMPTS],
    example: r#"{"messages": [{"role": "user", "content": "Hello!"}], "stream": false, "options": {"num_predict": 32}}"#,
};

/// Body of `/api/generate`.
pub(super) const GENERATE: RequestBody = RequestBody {
    name: "OllamaGenerateRequest",
    groups: &[Generate::json_schema, Common::json_schema],
    unsupported: &[UNSUPPORTED, IMAGES],
    example: r#"{"prompt": "Hello!", "stream": false, "options": {"num_predict": 32}}"#,
};

/// Body of `/api/embed`.
pub(super) const EMBED: RequestBody = RequestBody {
    name: "OllamaEmbedRequest",
    groups: &[InputFields::json_schema, Embed::json_schema],
    unsupported: &[],
    example: r#"{"input": "Hello!"}"#,
};

/// `options` of a body.
pub(super) const OPTIONS: RequestBody = RequestBody {
    name: "OllamaOptions",
    groups: &[Options::json_schema, SamplingFields::json_schema],
    unsupported: &[SAMPLING, OUTPUT, END],
    example: r#"{"num_predict": 32}"#,
};

const NOTHING: &[&str] = &["false", r#""""#, "[]"];

const UNSUPPORTED: &[(&str, &[&str])] = &[("context", NOTHING), ("grammar", NOTHING), ("template", NOTHING)];

/// Fields of `/api/generate` alone.
const PROMPTS: &[(&str, &[&str])] = &[("raw", NOTHING), ("suffix", NOTHING)];

/// Fields of the generation of images.
const IMAGES: &[(&str, &[&str])] = &[("height", &["0"]), ("steps", &["0"]), ("width", &["0"])];

#[derive(Deserialize, JsonSchema)]
pub(super) struct Chat {
    /// Messages of the conversation, oldest first; without one the model is only loaded.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub messages: Vec<Value>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Generate {
    /// Message of the user; without one the model is only loaded.
    pub prompt: Option<String>,
    /// Message of the system.
    pub system: Option<String>,
    /// Continues the prompt as it is, without the template; false if absent.
    #[serde(rename = "raw")]
    _raw: Option<bool>,
    /// Text after the gap that the answer fills, for models with tokens for it; without the template.
    pub suffix: Option<String>,
    /// Images of the message, for models that read them.
    #[schemars(extend("type" = ["array", "null"], "items" = {"type": "string", "contentEncoding": "base64"}))]
    pub images: Option<Value>,
}

/// Fields of both.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Common {
    /// Name or alias of a model; the server's first model if absent.
    pub model: Option<String>,
    /// Functions that the model may call.
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    pub tools: Option<Vec<Value>>,
    /// Sampling parameters and limits; others are ignored.
    #[serde(default)]
    #[schemars(schema_with = "options")]
    pub options: Option<Map<String, Value>>,
    /// Reasoning: on, off, or its effort.
    #[schemars(extend("enum" = [true, false, "low", "medium", "high", null]))]
    pub think: Option<Value>,
    /// Format of the answer: `json`, or a JSON Schema.
    #[schemars(extend("anyOf" = [{"enum": ["", "json", null]}, {"type": "object"}]))]
    pub format: Option<Value>,
    /// Time for which the model stays in memory after the request: seconds, or text such as `10m`; 0 unloads
    /// it, negative keeps it.
    #[schemars(extend("type" = ["number", "string", "null"]))]
    pub keep_alive: Option<Value>,
    /// Returns the log probabilities of the output tokens.
    pub logprobs: Option<bool>,
    /// Number of most probable tokens at each position; needs `logprobs`.
    pub top_logprobs: Option<usize>,
    /// Streams the response as lines of JSON; true if absent.
    pub stream: Option<bool>,
    /// Leaves out the oldest messages of a conversation that does not fit the context; true if absent.
    pub truncate: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Embed {
    /// Time for which the model stays in memory after the request: seconds, or text such as `10m`; 0 unloads
    /// it, negative keeps it.
    #[schemars(extend("type" = ["number", "string", "null"]))]
    pub keep_alive: Option<Value>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Options {
    /// Maximum number of output tokens; negative is no limit.
    pub num_predict: Option<i64>,
    /// Stop sequences.
    pub stop: Option<StopSequences>,
    /// Name of `repetition_penalty` in this API.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub repeat_penalty: Option<f32>,
}

fn options(_: &mut SchemaGenerator) -> Schema {
    let mut schema = OPTIONS.schema();
    schema["type"] = ["object", "null"].into();
    schema.try_into().expect("an object")
}
