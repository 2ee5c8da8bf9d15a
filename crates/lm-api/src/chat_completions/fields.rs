//! Fields of a chat completion.

use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::output::OutputFields;
use super::tools::ToolFields;
use crate::error::{ApiError, Result};
use crate::fields::{in_range, predicted, token_limit, word};
use crate::limits::Limits;
use crate::messages;
use crate::reasoning::Effort;
use crate::request::{FieldNames, Truncation};
use crate::request_body::RequestBody;
use crate::sampling::SamplingFields;
use crate::unsupported_fields::SAMPLING;

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
    builtin_tools: &[],
};

/// Body of a chat completion.
pub(super) const BODY: RequestBody = RequestBody {
    name: "ChatCompletionRequest",
    groups: &[
        Body::json_schema,
        ToolFields::json_schema,
        OutputFields::json_schema,
        SamplingFields::json_schema,
    ],
    unsupported: &[
        &[
            ("add_special_tokens", &["false"]),
            ("audio", &[]),
            ("best_of", &["1"]),
            ("echo", &["false"]),
            ("function_call", &[]),
            ("functions", &[]),
            ("max_output_tokens", &[]),
            ("modalities", &["[]", r#"["text"]"#]),
            ("num_predict", &[]),
            ("suffix", &["\"\""]),
            ("web_search_options", &[]),
        ],
        SAMPLING,
    ],
    example: r#"{"messages": [{"role": "user", "content": "Hello!"}], "max_completion_tokens": 32}"#,
};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Body {
    /// Name or alias of a model; the server's first model if absent.
    pub model: Option<String>,
    /// Messages of the conversation, oldest first.
    #[schemars(schema_with = "messages::schema")]
    pub messages: Vec<Value>,
    /// Effort of reasoning, for templates that read it; `none` is off.
    #[serde(default, deserialize_with = "word")]
    pub reasoning_effort: Option<Effort>,
    /// Maximum number of reasoning tokens.
    max_reasoning_tokens: Option<usize>,
    /// Variables of the chat template.
    pub chat_template_kwargs: Option<Map<String, Value>>,
    /// Documents, for templates that show them.
    pub documents: Option<Vec<Map<String, Value>>>,
    /// Name of `max_reasoning_tokens` in vLLM.
    thinking_token_budget: Option<usize>,
    /// The last message is the beginning of the reply.
    continue_final_message: Option<bool>,
    /// The opposite of `continue_final_message`, which vLLM's clients send with it.
    add_generation_prompt: Option<bool>,
    /// Leaves out the oldest messages of a conversation that does not fit the context (`auto`), as in the
    /// Responses API; `disabled` if absent.
    pub truncation: Option<Truncation>,
    /// Name of the dialect that replaces the model's.
    pub format: Option<String>,
    /// Returns the log probabilities of the output tokens.
    logprobs: Option<bool>,
    /// Number of most probable tokens at each position; needs `logprobs`.
    top_logprobs: Option<usize>,
    /// Maximum number of output tokens; -1 is no limit.
    #[serde(default, deserialize_with = "token_limit")]
    #[schemars(with = "Option<i64>", range(min = -1), extend("not" = {"const": 0}))]
    max_completion_tokens: Option<NonZeroUsize>,
    /// Older name of `max_completion_tokens`.
    #[serde(default, deserialize_with = "token_limit")]
    #[schemars(with = "Option<i64>", range(min = -1), extend("not" = {"const": 0}))]
    max_tokens: Option<NonZeroUsize>,
    /// Name of `max_completion_tokens` in llama.cpp; -2 fills the context.
    #[serde(default, deserialize_with = "predicted")]
    #[schemars(with = "Option<i64>", range(min = -2), extend("not" = {"const": 0}))]
    n_predict: Option<NonZeroUsize>,
}

/// Number of most probable tokens per token, of `logprobs` and `top_logprobs`; `None` without `logprobs`.
pub(crate) fn logprobs(wanted: Option<bool>, top: Option<usize>, limits: &Limits) -> Result<Option<usize>> {
    let wanted = wanted.unwrap_or(false);
    if let Some(top) = top {
        if !wanted && top > 0 {
            return Err(ApiError::invalid_param("top_logprobs", "`top_logprobs` needs `logprobs`: true"));
        }
        in_range("top_logprobs", top, 0, limits.top_logprobs)?;
    }
    Ok(wanted.then_some(top.unwrap_or(0)))
}

impl Body {
    /// Number of most probable tokens per token; `None` without `logprobs`.
    pub fn logprobs(&self, limits: &Limits) -> Result<Option<usize>> {
        logprobs(self.logprobs, self.top_logprobs, limits)
    }

    /// Maximum number of reasoning tokens.
    pub fn max_reasoning_tokens(&self) -> Option<usize> {
        self.max_reasoning_tokens.or(self.thinking_token_budget)
    }

    /// Token limit, with the name of its field.
    pub fn max_output_tokens(&self) -> Option<(&'static str, usize)> {
        let limits = [
            ("max_completion_tokens", self.max_completion_tokens),
            ("max_tokens", self.max_tokens),
            ("n_predict", self.n_predict),
        ];
        limits.into_iter().find_map(|(name, tokens)| Some((name, tokens?.get())))
    }

    /// True if the reply continues the last message.
    pub fn continues(&self) -> Result<bool> {
        let continues = self.continue_final_message.unwrap_or(false);
        match self.add_generation_prompt {
            Some(adds) if adds == continues => {
                let expected = "the opposite of `continue_final_message`";
                Err(ApiError::unexpected("add_generation_prompt", adds, expected))
            }
            _ => Ok(continues),
        }
    }
}
