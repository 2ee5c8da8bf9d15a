//! Fields of the output, which chat completions and completions have.

use std::num::NonZeroUsize;

use lm_conversation::TokenId;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::response_format::answer_format;
use crate::error::{ApiError, Result};
use crate::fields::{StopSequences, in_range};
use crate::limits::{Limits, at_most};
use crate::request::{ChatRequest, StreamOptions};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct OutputFields {
    /// Number of tokens before which no token ends an output.
    min_tokens: Option<usize>,
    /// Stop sequences.
    stop: Option<StopSequences>,
    /// Ids of tokens that end an output.
    #[serde(default)]
    #[schemars(length(max = 1_024))]
    stop_token_ids: Option<Vec<TokenId>>,
    /// Excludes the tokens that end an output, as benchmarks do.
    ignore_eos: Option<bool>,
    /// Number of choices, for each prompt if there are several; 1 if absent.
    n: Option<NonZeroUsize>,
    /// Format of the answer.
    #[schemars(extend("type" = ["object", "null"], "required" = ["type"], "properties" = {
        "type": {"enum": ["text", "json_object", "json_schema"]},
        "json_schema": {"properties": {"schema": {"description": "A JSON Schema."}}}
    }))]
    pub response_format: Option<Value>,
    /// Format of the answer by one of `json`, `json_object`, `regex`, `choice` and `grammar`.
    pub structured_outputs: Option<Map<String, Value>>,
    /// JSON Schema of the answer.
    #[schemars(extend("type" = ["object", "boolean", "string", "null"]))]
    pub guided_json: Option<Value>,
    /// Name of `guided_json` in llama.cpp.
    #[schemars(extend("type" = ["object", "boolean", "string", "null"]))]
    pub json_schema: Option<Value>,
    /// Regular expression of the answer.
    #[schemars(with = "Option<String>")]
    pub guided_regex: Option<Value>,
    /// Texts of which the answer is one.
    #[schemars(with = "Option<Vec<String>>", length(min = 1))]
    pub guided_choice: Option<Value>,
    /// Grammar of the answer, in GBNF or in llguidance's Lark dialect.
    #[schemars(with = "Option<String>")]
    pub guided_grammar: Option<Value>,
    /// Name of `guided_grammar` in llama.cpp.
    #[schemars(with = "Option<String>")]
    pub grammar: Option<Value>,
    /// Streams the response as server-sent events; false if absent.
    stream: Option<bool>,
    /// Options of a stream; `include_usage` adds a last chunk with the usage.
    stream_options: Option<StreamOptions>,
    /// Adds chunks with the progress of the prefill, `prompt_progress`, to a stream, as llama.cpp does; false
    /// if absent.
    return_progress: Option<bool>,
}

impl OutputFields {
    /// Sets the options of a request that has its token limit.
    pub fn set(mut self, request: &mut ChatRequest, limits: &Limits) -> Result<()> {
        (request.turn.response_format, request.names) = answer_format(&mut self, request.names)?;
        request.stop = StopSequences::read(self.stop, "stop", limits)?;
        request.stop_ids = self.stop_token_ids.unwrap_or_default();
        at_most("stop_token_ids", request.stop_ids.len(), limits.logit_bias, "tokens")?;
        request.ignores_end = self.ignore_eos.unwrap_or(false);
        request.choices = self.n.map_or(1, NonZeroUsize::get);
        in_range("n", request.choices, 1, limits.choices)?;
        if self.stream.unwrap_or(false) {
            let return_progress = self.return_progress.unwrap_or(false);
            request.stream =
                Some(StreamOptions { return_progress, ..self.stream_options.unwrap_or_default() });
        } else if self.stream_options.is_some() {
            return Err(ApiError::invalid_param("stream_options", "`stream_options` needs `stream`: true"));
        }
        request.min_output_tokens = self.min_tokens.unwrap_or(0);
        let most = request.max_output_tokens.map_or(usize::MAX, |(_, most)| most);
        in_range("min_tokens", request.min_output_tokens, 0, most)
    }
}
