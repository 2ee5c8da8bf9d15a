//! Request body of a chat completion.

use lm_conversation::{Calls, Preface, ThinkingConfig, ToolSpec, TurnOptions};
use lm_processors::{ALL as FAMILIES, by_name};
use lm_template::Map;
use serde_json::Value;

use super::fields::{BODY, NAMES};
use super::response_format::answer_format;
use super::tools::choice_among;
use crate::error::{ApiError, Result};
use crate::fields::{Fields, in_range, missing, shown, stop_sequences};
use crate::limits::Limits;
use crate::messages::messages;
use crate::reasoning::thinking;
use crate::request::{ChatRequest, StreamOptions};
use crate::request_body::RequestBody;
use crate::sampling::SamplingFields;
use crate::tools::tools;

impl ChatRequest {
    /// Body of a request.
    pub const BODY: &RequestBody = &BODY;

    /// Reads a request body within the default [`Limits`].
    ///
    /// Unknown fields are ignored, as are those without effect on the response of a local model (`user`,
    /// `store`, `metadata`, `service_tier`, `prediction`, `verbosity`, `prompt_cache_key`,
    /// `safety_identifier`).
    ///
    /// # Errors
    /// When a field is invalid or not supported; [`ApiError::param`] names it.
    pub fn from_json(body: Value) -> Result<Self> {
        Self::from_json_within(body, &Limits::default())
    }

    /// [`ChatRequest::from_json`] within the given limits.
    ///
    /// # Errors
    /// As [`ChatRequest::from_json`].
    pub fn from_json_within(body: Value, limits: &Limits) -> Result<Self> {
        let fields = &mut Fields::open(body, &BODY)?;
        let mut messages = messages(fields.required("messages")?, limits)?;
        let last = messages.pop().ok_or_else(|| missing("messages"))?;
        let mut specs = match fields.take("tools") {
            Some(value) => tools(value, &NAMES, limits)?,
            None => Vec::new(),
        };
        let effort = fields.get("reasoning_effort")?;
        let (thinking, effort) = thinking(effort, "reasoning_effort", fields.get("max_reasoning_tokens")?)?;
        let mut extra_context: Map<String, Value> = effort.into_iter().collect();
        extra_context.extend(template_variables(fields)?);
        let (response_format, names) = answer_format(fields, NAMES)?;
        let turn = TurnOptions { response_format, ..turn(fields, &mut specs, thinking, limits)? };
        let max_output_tokens = max_output_tokens(fields)?;
        Ok(Self {
            names,
            model: fields.get("model")?,
            preface: Preface { messages, tools: specs, extra_context },
            last,
            turn,
            sampling: SamplingFields::read(fields, limits)?,
            stop: stop_sequences(fields, "stop", limits)?,
            max_output_tokens,
            choices: choices(fields, limits)?,
            stream: stream(fields)?,
            dialect: dialect(fields)?,
            continues: continues(fields)?,
            min_output_tokens: min_tokens(fields, max_output_tokens)?,
            ignores_end: fields.get("ignore_eos")?.unwrap_or(false),
            keep_alive: None,
        })
    }
}

fn turn(
    fields: &mut Fields,
    tools: &mut Vec<ToolSpec>,
    thinking: ThinkingConfig,
    limits: &Limits,
) -> Result<TurnOptions> {
    let several = fields.get("parallel_tool_calls")?.unwrap_or(true);
    Ok(TurnOptions {
        tool_choice: choice_among(&fields.take("tool_choice").unwrap_or_default(), tools)?,
        calls: if several { Calls::Several } else { Calls::One },
        thinking,
        logprobs: logprobs(fields, limits)?,
        ..TurnOptions::default()
    })
}

/// Number of most probable tokens per token; `None` without `logprobs`.
fn logprobs(fields: &mut Fields, limits: &Limits) -> Result<Option<usize>> {
    let wanted = fields.get("logprobs")?.unwrap_or(false);
    let top = fields.get::<usize>("top_logprobs")?;
    if let Some(top) = top {
        if !wanted {
            return Err(ApiError::invalid_param("top_logprobs", "`top_logprobs` needs `logprobs`: true"));
        }
        in_range("top_logprobs", top, 0, limits.top_logprobs)?;
    }
    Ok(wanted.then_some(top.unwrap_or(0)))
}

/// Token limit: `max_completion_tokens`, otherwise the older `max_tokens`.
fn max_output_tokens(fields: &mut Fields) -> Result<Option<(&'static str, usize)>> {
    let mut limit = None;
    for name in ["max_tokens", "max_completion_tokens"] {
        if let Some(tokens) = fields.get(name)? {
            in_range(name, tokens, 1, usize::MAX)?;
            limit = Some((name, tokens));
        }
    }
    Ok(limit)
}

/// Minimum number of output tokens, `min_tokens`.
pub(crate) fn min_tokens(fields: &mut Fields, most: Option<(&str, usize)>) -> Result<usize> {
    let least = fields.get("min_tokens")?.unwrap_or(0);
    in_range("min_tokens", least, 0, most.map_or(usize::MAX, |(_, most)| most))?;
    Ok(least)
}

/// Reads `chat_template_kwargs`, which must not replace other fields of the request.
fn template_variables(fields: &mut Fields) -> Result<Map<String, Value>> {
    const NAME: &str = "chat_template_kwargs";
    let variables = fields.get::<Map<String, Value>>(NAME)?.unwrap_or_default();
    match ["messages", "tools", "add_generation_prompt"].iter().find(|own| variables.contains_key(**own)) {
        None => Ok(variables),
        Some(own) => {
            let message = format!("`{NAME}` has `{own}`, which is a field of the request");
            Err(ApiError::invalid_param(format!("{NAME}.{own}"), message))
        }
    }
}

/// Reads `continue_final_message`, and the `add_generation_prompt` that vLLM's clients send with it.
fn continues(fields: &mut Fields) -> Result<bool> {
    let continues = fields.get("continue_final_message")?.unwrap_or(false);
    match fields.get::<bool>("add_generation_prompt")? {
        Some(adds) if adds == continues => {
            let message = format!(
                "`add_generation_prompt` is {adds}, expected the opposite of `continue_final_message`"
            );
            Err(ApiError::invalid_param("add_generation_prompt", message))
        }
        _ => Ok(continues),
    }
}

/// Number of choices, `n`.
pub(crate) fn choices(fields: &mut Fields, limits: &Limits) -> Result<usize> {
    let n = fields.get("n")?.unwrap_or(1);
    in_range("n", n, 1, limits.choices)?;
    Ok(n)
}

/// Options of a stream, if one is requested.
pub(crate) fn stream(fields: &mut Fields) -> Result<Option<StreamOptions>> {
    let stream = fields.get("stream")?.unwrap_or(false);
    let options = fields.get::<StreamOptions>("stream_options")?;
    if options.is_some() && !stream {
        return Err(ApiError::invalid_param("stream_options", "`stream_options` needs `stream`: true"));
    }
    Ok(stream.then(|| options.unwrap_or_default()))
}

/// Dialect named by `format`.
fn dialect(fields: &mut Fields) -> Result<Option<String>> {
    let name = fields.get::<String>("format")?;
    let Some(unknown) = name.as_deref().filter(|name| by_name(name).is_none()) else { return Ok(name) };
    let known: Vec<_> = FAMILIES.iter().map(|family| family.processor.name()).collect();
    let message = format!("`format` is {}, known are {}", shown(&unknown.into()), known.join(", "));
    Err(ApiError::invalid_param("format", message))
}
