//! Request body of a completion.

use lm_conversation::{Engine, Message, TokenId, TurnOptions};
use lm_session::{CompiledConstraint, TextSegment};
use serde_json::Value;

use super::constraint;
use super::fields::{BODY, Body, NAMES};
use super::infilling::{self, Infilling};
use crate::chat_completions::OutputFields;
use crate::error::{ApiError, Result};
use crate::fields::{Fields, in_range};
use crate::limits::{Limits, at_most};
use crate::request::ChatRequest;
use crate::request_body::RequestBody;
use crate::sampling::SamplingFields;
use crate::text_inputs::TextInputs;

/// Request for the continuations of prompts.
///
/// ```
/// use lm_api::CompletionRequest;
/// use serde_json::json;
///
/// let request = CompletionRequest::from_json(json!({"prompt": ["Once", "Twice"], "n": 2, "logprobs": 3}))?;
/// assert_eq!((request.options.choices, request.options.turn.logprobs), (4, Some(3)));
/// assert_eq!(request.options.max_output_tokens, Some(("max_tokens", 16)));
/// # Ok::<(), lm_api::ApiError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CompletionRequest {
    /// Options of the choices of all prompts; there are no messages.
    pub options: ChatRequest,
    /// The prompts; at least one.
    pub prompts: TextInputs,
    /// Text after the gap that is to be filled; the prompt is the text before it.
    pub suffix: Option<String>,
    /// Begins each text with its prompt.
    pub echo: bool,
}

impl CompletionRequest {
    /// Body of a request.
    pub const BODY: &RequestBody = &BODY;

    /// Reads a request body within the default [`Limits`]. Unknown fields are ignored, as is `user`.
    ///
    /// # Errors
    /// When a field is invalid or not supported; [`ApiError::param`](crate::ApiError::param) names it.
    pub fn from_json(body: Value) -> Result<Self> {
        Self::from_json_within(body, &Limits::default())
    }

    /// [`CompletionRequest::from_json`] within the given limits.
    ///
    /// # Errors
    /// As [`CompletionRequest::from_json`].
    pub fn from_json_within(body: Value, limits: &Limits) -> Result<Self> {
        let fields = Fields::open(body, &BODY)?;
        let (sampling, output): (SamplingFields, OutputFields) = (fields.read()?, fields.read()?);
        let body: Body = fields.into_group()?;
        let echo = body.echo.unwrap_or(false);
        in_range("logprobs", body.logprobs.unwrap_or(0), 0, limits.top_logprobs)?;
        let mut options = ChatRequest {
            turn: TurnOptions {
                logprobs: body.logprobs,
                prompt_logprobs: body.logprobs.filter(|_| echo),
                ..TurnOptions::default()
            },
            sampling: sampling.checked(limits)?,
            max_output_tokens: body.max_tokens(echo)?,
            ..ChatRequest::new(NAMES, Message::user(""))
        };
        output.set(&mut options, limits)?;
        body.check_best_of(options.choices)?;
        options.model = body.model;
        let prompts = TextInputs::read(body.prompt, "prompt", limits.choices)?;
        options.choices *= prompts.texts().len();
        at_most("prompt", options.choices, limits.choices, "choices, its texts times `n`")?;
        let suffix = body.suffix.filter(|suffix| !suffix.is_empty());
        if echo && suffix.is_some() {
            return Err(ApiError::invalid_param("echo", "`echo` and `suffix` cannot be combined"));
        }
        Ok(Self { options, prompts, suffix, echo })
    }

    /// Number of choices of each prompt, `n`.
    pub(crate) fn per_prompt(&self) -> usize {
        self.options.choices / self.prompts.texts().len()
    }

    /// Creates a request that continues one text with the options of another API.
    pub(crate) fn of_text(prompt: String, suffix: Option<String>, options: ChatRequest) -> Result<Self> {
        let prompts = match suffix {
            Some(_) => TextInputs::one("prompt", prompt),
            None => TextInputs::read(prompt.into(), "prompt", 1)?,
        };
        Ok(Self { options, prompts, suffix, echo: false })
    }

    /// Prompts as tokens. Texts may spell special tokens, unless there is a suffix: templates are rendered by
    /// the caller.
    pub(crate) fn ids(&self, engine: &Engine) -> Result<Vec<Vec<TokenId>>> {
        let Some(after) = &self.suffix else {
            return self.prompts.ids(engine, |text| TextSegment::Template(text));
        };
        let infilling = Infilling::of(engine.tokenizer()).ok_or_else(infilling::unsupported)?;
        let prompts = self.prompts.texts().iter().enumerate();
        prompts
            .map(|(index, before)| {
                infilling.prompt(engine.tokenizer(), before, after, &self.prompts.path(index))
            })
            .collect()
    }

    /// Tokens that end the texts, beside the model's.
    pub(crate) fn ends(&self, engine: &Engine) -> Vec<TokenId> {
        let infilling = self.suffix.as_ref().and_then(|_| Infilling::of(engine.tokenizer()));
        infilling.map(|infilling| infilling.ends).unwrap_or_default()
    }

    /// Constraint of the texts, if they have a format.
    pub(crate) fn constraint(&self, engine: &Engine) -> Result<Option<CompiledConstraint>> {
        constraint::of(&self.options, engine)
    }
}
