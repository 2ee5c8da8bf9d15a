//! Fields of a completion.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::chat_completions::{NAMES as CHAT_NAMES, OutputFields};
use crate::error::{ApiError, Result};
use crate::request::FieldNames;
use crate::request_body::RequestBody;
use crate::sampling::SamplingFields;
use crate::text_inputs::TextInputs;
use crate::unsupported_fields::SAMPLING;

/// Token limit of a request without `max_tokens`, as OpenAI documents it.
const MAX_TOKENS: i64 = 16;

/// Names of the fields.
pub(super) const NAMES: FieldNames =
    FieldNames { messages: "prompt", max_output_tokens: "max_tokens", ..CHAT_NAMES };

/// Body of a completion.
pub(super) const BODY: RequestBody = RequestBody {
    name: "CompletionRequest",
    groups: &[Body::json_schema, OutputFields::json_schema, SamplingFields::json_schema],
    unsupported: &[
        SAMPLING,
        &[("add_special_tokens", &["true"]), ("max_output_tokens", &[]), ("num_predict", &[])],
    ],
    example: r#"{"prompt": "Once upon a time", "max_tokens": 16}"#,
};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Body {
    /// Name or alias of a model; the server's first model if absent.
    pub model: Option<String>,
    /// Text or token ids, or an array of either.
    #[schemars(schema_with = "TextInputs::schema")]
    pub prompt: Value,
    /// Maximum number of output tokens; 16 if absent, and -1 is no limit. 0 needs `echo`, and only scores the
    /// prompt.
    #[schemars(range(min = -1))]
    max_tokens: Option<i64>,
    /// Newer name of `max_tokens`.
    #[schemars(range(min = -1))]
    max_completion_tokens: Option<i64>,
    /// Name of `max_tokens` in llama.cpp; -2 fills the context.
    #[schemars(range(min = -2))]
    n_predict: Option<i64>,
    /// 1, or the same as `n`: all texts are returned.
    best_of: Option<usize>,
    /// Text after the gap that the completion fills, for models with tokens for it.
    pub suffix: Option<String>,
    /// Begins each text with its prompt.
    pub echo: Option<bool>,
    /// Number of most probable tokens at each position.
    pub logprobs: Option<usize>,
}

impl Body {
    /// Token limit with the name of its field; `None` for none.
    pub fn max_tokens(&self, echo: bool) -> Result<Option<(&'static str, usize)>> {
        let limits = [
            ("max_tokens", self.max_tokens),
            ("max_completion_tokens", self.max_completion_tokens),
            ("n_predict", self.n_predict),
        ];
        let given = limits.into_iter().find_map(|(name, tokens)| Some((name, tokens?)));
        let (name, tokens) = given.unwrap_or(("max_tokens", MAX_TOKENS));
        let least = i64::from(!echo);
        let is_unlimited = tokens == -1 || (tokens == -2 && name == "n_predict");
        if tokens < least && !is_unlimited {
            let expected = format!("an integer of at least {least}, or -1 for no limit");
            return Err(ApiError::unexpected(name, tokens, expected));
        }
        Ok(usize::try_from(tokens).ok().map(|tokens| (name, tokens)))
    }

    /// Refuses a choice of the best ones: all that are made are returned.
    pub fn check_best_of(&self, n: usize) -> Result<()> {
        match self.best_of {
            Some(best_of) if best_of != n && best_of != 1 => {
                let expected = format!("1 or `n`, which is {n}");
                let error = ApiError::unexpected("best_of", best_of, expected);
                Err(error.with_code("unsupported_parameter"))
            }
            _ => Ok(()),
        }
    }
}
