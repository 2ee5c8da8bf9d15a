//! Request body.

use lm_conversation::{Calls, Preface, ToolSpec, TurnOptions};
use lm_template::{Map, Message};
use serde_json::{Value, json};

use super::fields::{BODY, NAMES};
use super::input;
use super::store::ResponseStore;
use crate::chat_completions::{choice_among, response_format_at};
use crate::error::{ApiError, Result};
use crate::fields::{Fields, in_range, missing, shown};
use crate::limits::Limits;
use crate::reasoning::thinking;
use crate::request::{ChatRequest, StreamOptions};
use crate::request_body::RequestBody;
use crate::sampling::SamplingFields;
use crate::tools::tools;

/// Request of the Responses API: the converted [`ChatRequest`], and the fields that the response echoes.
///
/// ```
/// use lm_api::{Limits, ResponseStore, ResponsesRequest};
/// use serde_json::json;
///
/// let body = json!({"input": "How is the weather in Paris?", "instructions": "Be brief.", "max_output_tokens": 100});
/// let request = ResponsesRequest::from_json_within(body, &ResponseStore::default(), &Limits::default())?;
/// assert_eq!(request.chat.last.content.text(), "How is the weather in Paris?");
/// assert_eq!(request.chat.preface.messages[0].content.text(), "Be brief.");
/// # Ok::<(), lm_api::ApiError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ResponsesRequest {
    /// The request, converted to messages, tools and turn options.
    pub chat: ChatRequest,
    /// Fields that the response echoes.
    pub(super) repeated: Map<String, Value>,
    /// Items of earlier responses and of the input.
    pub(super) items: Vec<Value>,
    /// True if the response is stored.
    pub(super) store: bool,
}

impl ResponsesRequest {
    /// Fields of the request body: their schemas, the required ones, and an example.
    pub const BODY: &RequestBody = &BODY;

    /// Parses a request body within `limits`. `previous_response_id` is looked up in `store`.
    ///
    /// Unknown fields are ignored, as are those without effect here (`user`, `metadata`, `include`,
    /// `service_tier`, `safety_identifier`, `prompt_cache_key`).
    ///
    /// # Errors
    /// When a field is invalid or not supported; [`ApiError::param`] names it.
    pub fn from_json_within(body: Value, store: &ResponseStore, limits: &Limits) -> Result<Self> {
        let fields = &mut Fields::open(body, &BODY)?;
        let repeated = repeated(fields);
        let mut items = previous(fields, store)?;
        let known = items.len();
        items.extend(input::items(fields.required("input")?, limits)?);
        let mut messages = input::conversation(&items, known, limits).map_err(renamed)?;
        let last = messages.pop().ok_or_else(|| missing("input"))?;
        if let Some(instructions) = fields.get::<String>("instructions")? {
            messages.insert(0, Message::system(instructions));
        }
        let mut specs = match fields.take("tools") {
            Some(value) => tools(value, &NAMES, limits)?,
            None => Vec::new(),
        };
        let reasoning = fields.get::<Map<String, Value>>("reasoning")?.unwrap_or_default();
        let effort = effort(&reasoning)?;
        let (thinking, effort) = thinking(effort, "reasoning.effort", fields.get("max_reasoning_tokens")?)?;
        let turn = TurnOptions { thinking, ..turn(fields, &mut specs)? };
        let chat = ChatRequest {
            names: NAMES,
            model: fields.get("model")?,
            preface: Preface { messages, tools: specs, extra_context: effort.into_iter().collect() },
            last,
            turn,
            sampling: SamplingFields::read(fields, limits)?,
            stop: Vec::new(),
            max_output_tokens: max_output_tokens(fields)?,
            choices: 1,
            stream: fields.get("stream")?.unwrap_or(false).then(StreamOptions::default),
            dialect: None,
            continues: false,
            min_output_tokens: 0,
            ignores_end: false,
            keep_alive: None,
        };
        Ok(Self { chat, repeated, items, store: fields.get("store")?.unwrap_or(true) })
    }
}

/// Items of the response that `previous_response_id` names, with those before it.
fn previous(fields: &mut Fields, store: &ResponseStore) -> Result<Vec<Value>> {
    let Some(id) = fields.get::<String>("previous_response_id")? else { return Ok(Vec::new()) };
    let stored = store.get(&id).ok_or_else(|| {
        let message =
            format!("there is no response {}; it may have been removed to make room", shown(&id.into()));
        let error = ApiError::refused(404, "invalid_request_error", message);
        error.with_param("previous_response_id").with_code("previous_response_not_found")
    })?;
    Ok(stored.items.clone())
}

fn turn(fields: &mut Fields, tools: &mut Vec<ToolSpec>) -> Result<TurnOptions> {
    let several = fields.get("parallel_tool_calls")?.unwrap_or(true);
    let text = fields.get::<Map<String, Value>>("text")?.unwrap_or_default();
    let format = text.get("format").filter(|format| !format.is_null());
    let format = format.map(|format| response_format_at(format, NAMES.format)).transpose();
    Ok(TurnOptions {
        tool_choice: choice_among(&fields.take("tool_choice").unwrap_or_default(), tools)?,
        calls: if several { Calls::Several } else { Calls::One },
        response_format: format.map_err(|error| error.with_param(NAMES.format))?.flatten(),
        ..TurnOptions::default()
    })
}

fn effort(reasoning: &Map<String, Value>) -> Result<Option<String>> {
    match reasoning.get("effort") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(effort)) => Ok(Some(effort.clone())),
        Some(other) => {
            let message = format!("`reasoning.effort` is {}, expected text", shown(other));
            Err(ApiError::invalid_param("reasoning.effort", message))
        }
    }
}

fn max_output_tokens(fields: &mut Fields) -> Result<Option<(&'static str, usize)>> {
    let name = NAMES.max_output_tokens;
    let Some(tokens) = fields.get(name)? else { return Ok(None) };
    in_range(name, tokens, 1, usize::MAX)?;
    Ok(Some((name, tokens)))
}

/// Error with the names of this API in place of those of chat completions.
fn renamed(error: ApiError) -> ApiError {
    let rename = |text: String| text.replace("messages", "input");
    ApiError { param: error.param.map(rename), message: rename(error.message), ..error }
}

/// Fields of the request that the response has too, with their defaults.
fn repeated(fields: &Fields) -> Map<String, Value> {
    let defaults = [
        ("instructions", Value::Null),
        ("max_output_tokens", Value::Null),
        ("metadata", json!({})),
        ("parallel_tool_calls", true.into()),
        ("previous_response_id", Value::Null),
        ("reasoning", json!({"effort": null, "summary": null})),
        ("store", true.into()),
        ("temperature", Value::Null),
        ("text", json!({"format": {"type": "text"}})),
        ("tool_choice", "auto".into()),
        ("tools", json!([])),
        ("top_p", Value::Null),
        ("truncation", "disabled".into()),
        ("user", Value::Null),
    ];
    let value = |(key, default): (&str, Value)| {
        let given = fields.peek(key).cloned();
        (key.to_owned(), given.unwrap_or(default))
    };
    defaults.into_iter().map(value).collect()
}
