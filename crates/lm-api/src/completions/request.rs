//! Request body of a completion.

use lm_conversation::{Engine, Message, Preface, TokenId, TurnOptions};
use lm_session::{CompiledConstraint, TextSegment};
use serde_json::Value;

use super::constraint;
use super::fields::{BODY, NAMES};
use crate::chat_completions::{answer_format, choices, min_tokens, stream};
use crate::error::{ApiError, Result};
use crate::fields::{Fields, in_range, stop_sequences};
use crate::limits::{Limits, at_most};
use crate::request::ChatRequest;
use crate::request_body::RequestBody;
use crate::sampling::SamplingFields;
use crate::text_inputs::TextInputs;

/// Token limit of a request without `max_tokens`, as OpenAI documents it.
const MAX_TOKENS: usize = 16;

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
    /// Begins each text with its prompt.
    pub echo: bool,
}

impl CompletionRequest {
    /// Body of a request.
    pub const BODY: &RequestBody = &BODY;

    /// Reads a request body within the default [`Limits`]. Unknown fields are ignored, as is `user`.
    ///
    /// # Errors
    /// When a field is invalid or not supported; [`ApiError::param`] names it.
    pub fn from_json(body: Value) -> Result<Self> {
        Self::from_json_within(body, &Limits::default())
    }

    /// [`CompletionRequest::from_json`] within the given limits.
    ///
    /// # Errors
    /// As [`CompletionRequest::from_json`].
    pub fn from_json_within(body: Value, limits: &Limits) -> Result<Self> {
        let fields = &mut Fields::open(body, &BODY)?;
        let prompts = TextInputs::read(fields, "prompt", limits.choices)?;
        let echo = fields.get("echo")?.unwrap_or(false);
        let n = choices(fields, limits)?;
        best_of(fields, n)?;
        let all = n * prompts.texts().len();
        at_most("prompt", all, limits.choices, "choices, its texts times `n`")?;
        let logprobs = logprobs(fields, limits)?;
        let (response_format, names) = answer_format(fields, NAMES)?;
        let turn = TurnOptions {
            response_format,
            logprobs,
            prompt_logprobs: logprobs.filter(|_| echo),
            ..TurnOptions::default()
        };
        let max_tokens = Some(("max_tokens", max_tokens(fields, echo)?));
        let options = ChatRequest {
            names,
            model: fields.get("model")?,
            preface: Preface::default(),
            last: Message::user(""),
            turn,
            sampling: SamplingFields::read(fields, limits)?,
            stop: stop_sequences(fields, "stop", limits)?,
            max_output_tokens: max_tokens,
            choices: all,
            stream: stream(fields)?,
            dialect: None,
            continues: false,
            min_output_tokens: min_tokens(fields, max_tokens)?,
            ignores_end: fields.get("ignore_eos")?.unwrap_or(false),
            keep_alive: None,
        };
        Ok(Self { options, prompts, echo })
    }

    /// Number of choices of each prompt, `n`.
    pub(crate) fn per_prompt(&self) -> usize {
        self.options.choices / self.prompts.texts().len()
    }

    /// Prompts as tokens. Texts may spell special tokens: templates are rendered by the caller.
    pub(crate) fn ids(&self, engine: &Engine) -> Result<Vec<Vec<TokenId>>> {
        self.prompts.ids(engine, |text| TextSegment::Template(text))
    }

    /// Constraint of the texts, if they have a format.
    pub(crate) fn constraint(&self, engine: &Engine) -> Result<Option<CompiledConstraint>> {
        constraint::of(&self.options, engine)
    }
}

/// Refuses a choice of the best ones: all that are made are returned.
fn best_of(fields: &mut Fields, n: usize) -> Result<()> {
    match fields.get::<usize>("best_of")? {
        Some(best_of) if best_of != n && best_of != 1 => {
            let message = format!("`best_of` is {best_of}, expected 1 or `n`, which is {n}");
            Err(ApiError::invalid_param("best_of", message).with_code("unsupported_parameter"))
        }
        _ => Ok(()),
    }
}

/// Number of most probable tokens per token.
fn logprobs(fields: &mut Fields, limits: &Limits) -> Result<Option<usize>> {
    let top = fields.get::<usize>("logprobs")?;
    top.map_or(Ok(()), |top| in_range("logprobs", top, 0, limits.top_logprobs))?;
    Ok(top)
}

/// Token limit; 0 only scores the prompt.
fn max_tokens(fields: &mut Fields, echo: bool) -> Result<usize> {
    let tokens = fields.get("max_tokens")?.unwrap_or(MAX_TOKENS);
    in_range("max_tokens", tokens, usize::from(!echo), usize::MAX)?;
    Ok(tokens)
}
