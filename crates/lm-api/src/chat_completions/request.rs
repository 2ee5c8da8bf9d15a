//! Request body of a chat completion.

use lm_conversation::{Preface, TurnOptions};
use lm_processors::{ALL as FAMILIES, by_name};
use lm_template::{Map, THINKING_VARIABLES};
use serde_json::Value;

use super::fields::{BODY, Body, NAMES};
use super::output::OutputFields;
use super::tools::ToolFields;
use crate::error::{ApiError, Result};
use crate::fields::{Fields, shown};
use crate::limits::Limits;
use crate::messages::messages;
use crate::reasoning::{Effort, thinking};
use crate::request::{ChatRequest, Truncation};
use crate::request_body::RequestBody;
use crate::sampling::SamplingFields;

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
        let fields = Fields::open(body, &BODY)?;
        let (tools, sampling): (ToolFields, SamplingFields) = (fields.read()?, fields.read()?);
        let (output, body): (OutputFields, Body) = (fields.read()?, fields.into_group()?);
        let (logprobs, continues) = (body.logprobs(limits)?, body.continues()?);
        let (max_output_tokens, max_reasoning_tokens) =
            (body.max_output_tokens(), body.max_reasoning_tokens());
        let mut messages = messages(body.messages, limits)?;
        let last = messages.pop().ok_or_else(|| ApiError::missing("messages"))?;
        let (tools, client_tools, turn) = tools.read(&NAMES, limits)?;
        // Variables of the template that the request sets itself win.
        let switch = |variables: &Map<String, Value>| {
            THINKING_VARIABLES.iter().any(|name| variables.contains_key(*name))
        };
        let reasons = body.reasoning_effort.is_some_and(Effort::reasons)
            && !body.chat_template_kwargs.as_ref().is_some_and(switch);
        let (thinking, effort) = thinking(body.reasoning_effort, max_reasoning_tokens);
        let mut extra_context: Map<String, Value> = effort.into_iter().collect();
        extra_context.extend(
            body.documents.map(|documents| {
                ("documents".to_owned(), documents.into_iter().map(Value::Object).collect())
            }),
        );
        extra_context.extend(template_variables(body.chat_template_kwargs.unwrap_or_default())?);
        let mut request = Self {
            model: body.model,
            preface: Preface { messages, tools, extra_context },
            turn: TurnOptions { thinking, logprobs, ..turn },
            sampling: sampling.checked(limits)?,
            max_output_tokens,
            dialect: body.format.map(dialect).transpose()?,
            continues,
            truncates: body.truncation == Some(Truncation::Auto),
            reasons,
            client_tools,
            ..Self::new(NAMES, last)
        };
        output.set(&mut request, limits)?;
        Ok(request)
    }
}

/// Checks `chat_template_kwargs`, which must not replace other fields of the request.
fn template_variables(variables: Map<String, Value>) -> Result<Map<String, Value>> {
    const NAME: &str = "chat_template_kwargs";
    match ["messages", "tools", "add_generation_prompt"].iter().find(|own| variables.contains_key(**own)) {
        None => Ok(variables),
        Some(own) => {
            let message = format!("`{NAME}` has `{own}`, which is a field of the request");
            Err(ApiError::invalid_param(format!("{NAME}.{own}"), message))
        }
    }
}

/// Checks the name of a dialect, `format`.
fn dialect(name: String) -> Result<String> {
    if by_name(&name).is_some() {
        return Ok(name);
    }
    let known: Vec<_> = FAMILIES.iter().map(|family| family.processor.name()).collect();
    let message = format!("`format` is {}, known are {}", shown(&name.into()), known.join(", "));
    Err(ApiError::invalid_param("format", message))
}
