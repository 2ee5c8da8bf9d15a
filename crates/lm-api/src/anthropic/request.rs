//! Request body of Anthropic's messages.

use lm_conversation::{Preface, ResponseFormat, Role, ThinkingConfig, ThinkingMode, TurnOptions};
use serde_json::{Map, Value, json};

use super::fields::{Body, COUNT, Length, MESSAGE, NAMES};
use super::messages::{messages, system};
use super::tools::{choice, declared};
use crate::chat_completions::response_format_at;
use crate::error::{ApiError, Result};
use crate::fields::{Fields, StopSequences, nested, shown, word};
use crate::limits::Limits;
use crate::reasoning::Effort;
use crate::request::{ChatRequest, FieldNames, StreamOptions, noted};
use crate::request_body::RequestBody;
use crate::sampling::SamplingFields;

/// Parser of the bodies of `/v1/messages` and `/v1/messages/count_tokens`.
#[derive(Debug)]
pub struct AnthropicRequest;

impl AnthropicRequest {
    /// Fields of the body of `/v1/messages`.
    pub const MESSAGE: &RequestBody = &MESSAGE;
    /// Fields of the body of `/v1/messages/count_tokens`.
    pub const COUNT: &RequestBody = &COUNT;

    /// Parses the body of `/v1/messages`; `max_tokens` is required. Unknown fields are ignored, as are those
    /// without effect on the response of a local model (`metadata`, `cache_control`, `service_tier`).
    ///
    /// ```
    /// use lm_api::{AnthropicRequest, Limits};
    /// use serde_json::json;
    ///
    /// let request = AnthropicRequest::message(json!({
    ///     "model": "any",
    ///     "max_tokens": 100,
    ///     "system": "Be brief.",
    ///     "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi."}]}],
    /// }), &Limits::default())?;
    /// assert_eq!((request.preface.messages.len(), request.last.content.text().as_str()), (1, "Hi."));
    /// # Ok::<(), lm_api::ApiError>(())
    /// ```
    ///
    /// # Errors
    /// When a field is invalid or not supported; [`ApiError::param`] names it.
    pub fn message(body: Value, limits: &Limits) -> Result<ChatRequest> {
        let fields = Fields::open(body, &MESSAGE)?;
        let length = fields.read::<Length>();
        read(fields, limits).and_then(|request| length.map(|_| request))
    }

    /// Parses the body of `/v1/messages/count_tokens`: the fields of `/v1/messages`, with `max_tokens`
    /// optional.
    ///
    /// # Errors
    /// As [`AnthropicRequest::message`].
    pub fn count(body: Value, limits: &Limits) -> Result<ChatRequest> {
        read(Fields::open(body, &COUNT)?, limits)
    }
}

fn read(fields: Fields, limits: &Limits) -> Result<ChatRequest> {
    let (sampling, body): (SamplingFields, Body) = (fields.read()?, fields.into_group()?);
    let mut conversation: Vec<_> = body.system.map(system).transpose()?.flatten().into_iter().collect();
    let (turns, left_out) = messages(body.messages, limits)?;
    conversation.extend(turns);
    let last = conversation.pop().ok_or_else(|| ApiError::missing("messages"))?;
    let (tools, client_tools) = declared(body.tools.unwrap_or_default(), limits)?;
    let (tool_choice, calls) = choice(&body.tool_choice.unwrap_or_default(), &tools, &client_tools)?;
    let effort = body.output_config.as_ref().and_then(|config| config.get("effort")).cloned();
    let effort = effort.filter(|effort| !effort.is_null()).map(effort_variable).transpose()?;
    let (response_format, names) = format(body.output_config, body.output_format)?;
    let thinking = body.thinking.map(thinking).transpose()?.unwrap_or_default();
    Ok(ChatRequest {
        model: body.model,
        preface: Preface { messages: conversation, tools, extra_context: effort.into_iter().collect() },
        turn: TurnOptions { tool_choice, calls, thinking, response_format, ..TurnOptions::default() },
        sampling: sampling.checked(limits)?,
        stop: StopSequences::read(body.stop_sequences, NAMES.stop, limits)?,
        max_output_tokens: body.max_tokens.map(|tokens| (NAMES.max_output_tokens, tokens.get())),
        stream: body.stream.unwrap_or(false).then(StreamOptions::default),
        continues: last.role == Role::Assistant,
        may_ignore_thinking: true,
        client_tools,
        left_out: noted(left_out),
        ..ChatRequest::new(names, last)
    })
}

/// Reads `output_config.effort`: a variable of the template; some templates read it.
fn effort_variable(effort: Value) -> Result<(String, Value)> {
    const NAME: &str = "output_config.effort";
    let effort: Option<Effort> =
        word(effort).map_err(|error| ApiError::invalid_param(NAME, format!("`{NAME}`: {error}")))?;
    Ok(("reasoning_effort".to_owned(), json!(effort)))
}

/// Reads `thinking`. `adaptive`: the model decides.
fn thinking(thinking: Value) -> Result<ThinkingConfig> {
    let mode = match thinking.get("type").and_then(Value::as_str) {
        Some("enabled") => ThinkingMode::On,
        Some("disabled") => ThinkingMode::Off,
        Some("adaptive") => ThinkingMode::Default,
        _ => {
            let expected = r#"a `type` of "enabled", "disabled" or "adaptive""#;
            return Err(ApiError::unexpected("thinking", shown(&thinking), expected));
        }
    };
    let max_tokens = match thinking.get("budget_tokens") {
        Some(budget) if mode == ThinkingMode::On && !budget.is_null() => {
            let tokens =
                budget.as_u64().filter(|tokens| *tokens > 0).and_then(|tokens| tokens.try_into().ok());
            let message =
                || format!("`budget_tokens` is {}, expected an integer of at least 1", shown(budget));
            Some(tokens.ok_or_else(|| ApiError::invalid_param("thinking.budget_tokens", message()))?)
        }
        _ => None,
    };
    Ok(ThinkingConfig { mode, max_tokens })
}

/// Reads the format of the answer: `output_config.format`, otherwise the older `output_format`. Returns the
/// field names with the name of the format, too.
fn format(
    config: Option<Map<String, Value>>,
    older: Option<Value>,
) -> Result<(Option<ResponseFormat>, FieldNames)> {
    const OLDER: FieldNames = FieldNames { format: "output_format", ..NAMES };
    let newer = nested(config, "format").map(|format| (format, NAMES));
    let Some((format, names)) = newer.or(older.map(|format| (format, OLDER))) else {
        return Ok((None, NAMES));
    };
    Ok((response_format_at(&format, names.format)?, names))
}
