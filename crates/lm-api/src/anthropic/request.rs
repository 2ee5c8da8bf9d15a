//! Request body of Anthropic's messages.

use std::num::NonZeroUsize;

use lm_conversation::{Preface, ResponseFormat, Role, ThinkingConfig, ThinkingMode, TurnOptions};
use serde_json::{Map, Value};

use super::fields::{COUNT, MESSAGE, NAMES};
use super::messages::{messages, system};
use super::tools::{choice, declared};
use crate::chat_completions::response_format_at;
use crate::error::{ApiError, Result};
use crate::fields::{Fields, missing, shown, stop_sequences};
use crate::limits::Limits;
use crate::request::{ChatRequest, FieldNames, StreamOptions};
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
        let request = read(Fields::open(body, &MESSAGE)?, limits)?;
        if request.max_output_tokens.is_none() {
            return Err(missing("max_tokens"));
        }
        Ok(request)
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

fn read(mut fields: Fields, limits: &Limits) -> Result<ChatRequest> {
    let fields = &mut fields;
    let mut conversation: Vec<_> = fields.take("system").map(system).transpose()?.into_iter().collect();
    conversation.extend(messages(fields.required("messages")?, limits)?);
    let last = conversation.pop().ok_or_else(|| missing("messages"))?;
    let continues = last.role == Role::Assistant;
    let tools = fields.take("tools").map(|tools| declared(tools, limits)).transpose()?.unwrap_or_default();
    let (tool_choice, calls) = choice(&fields.take("tool_choice").unwrap_or_default(), &tools)?;
    let (response_format, names) = format(fields)?;
    let turn = TurnOptions {
        tool_choice,
        calls,
        thinking: thinking(fields)?,
        response_format,
        ..TurnOptions::default()
    };
    let max_tokens = fields.get::<NonZeroUsize>("max_tokens")?;
    Ok(ChatRequest {
        names,
        model: fields.get("model")?,
        preface: Preface { messages: conversation, tools, extra_context: Map::new() },
        last,
        turn,
        sampling: SamplingFields::read(fields, limits)?,
        stop: stop_sequences(fields, NAMES.stop, limits)?,
        max_output_tokens: max_tokens.map(|tokens| (NAMES.max_output_tokens, tokens.get())),
        choices: 1,
        stream: fields.get("stream")?.unwrap_or(false).then(StreamOptions::default),
        dialect: None,
        continues,
        min_output_tokens: 0,
        ignores_end: false,
        keep_alive: None,
    })
}

/// Reads `thinking`. Absent and `adaptive`: the model decides.
fn thinking(fields: &mut Fields) -> Result<ThinkingConfig> {
    let Some(thinking) = fields.take("thinking") else { return Ok(ThinkingConfig::default()) };
    let mode = match thinking.get("type").and_then(Value::as_str) {
        Some("enabled") => ThinkingMode::On,
        Some("disabled") => ThinkingMode::Off,
        Some("adaptive") => ThinkingMode::Default,
        _ => {
            let expected = r#"expected a `type` of "enabled", "disabled" or "adaptive""#;
            let message = format!("`thinking` is {}, {expected}", shown(&thinking));
            return Err(ApiError::invalid_param("thinking", message));
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
fn format(fields: &mut Fields) -> Result<(Option<ResponseFormat>, FieldNames)> {
    const OLDER: FieldNames = FieldNames { format: "output_format", ..NAMES };
    let older = fields.take(OLDER.format).map(|format| (format, OLDER));
    let config = fields.get::<Map<String, Value>>("output_config")?;
    let newer = config.and_then(|mut config| config.remove("format")).filter(|format| !format.is_null());
    let Some((format, names)) = newer.map(|format| (format, NAMES)).or(older) else {
        return Ok((None, NAMES));
    };
    Ok((response_format_at(&format, names.format)?, names))
}
