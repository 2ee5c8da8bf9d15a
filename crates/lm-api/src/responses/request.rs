//! Request body.

use std::sync::Arc;

use lm_conversation::{Preface, TurnOptions};
use lm_template::{Map, Message};
use serde_json::{Value, json};

use super::conversations;
use super::fields::{BODY, Body, NAMES};
use super::input::{self, Converted};
use super::store::{ConversationLock, ResponseStore};
use crate::chat_completions::{self, ToolFields, response_format_at};
use crate::error::{ApiError, Result};
use crate::fields::{Fields, nested, shown, word};
use crate::ids::random_id;
use crate::limits::Limits;
use crate::reasoning::{Effort, thinking};
use crate::request::{ChatRequest, StreamOptions, Truncation, noted};
use crate::request_body::RequestBody;
use crate::sampling::SamplingFields;

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
    /// Number of first items that the input does not have.
    pub(super) known: usize,
    /// The conversation that the response continues.
    pub(super) conversation: Option<Arc<ConversationLock>>,
    /// True if the response is stored.
    pub(super) store: bool,
    /// Runs the response without the connection: clients ask for its state.
    pub background: bool,
    /// Id of the response.
    pub id: String,
}

impl ResponsesRequest {
    /// Fields of the request body: their schemas, the required ones, and an example.
    pub const BODY: &RequestBody = &BODY;

    /// Parses a request body within `limits`. `previous_response_id` and `conversation` are looked up in
    /// `store`. No other request continues the conversation until this one is dropped, or its response ends.
    ///
    /// Unknown fields are ignored, as are those without effect here (`user`, `metadata`,
    /// `service_tier`, `safety_identifier`, `prompt_cache_key`).
    ///
    /// # Errors
    /// When a field is invalid or not supported; [`ApiError::param`] names it.
    pub fn from_json_within(body: Value, store: &ResponseStore, limits: &Limits) -> Result<Self> {
        Self::read(body, store, limits, true)
    }

    /// [`from_json_within`](Self::from_json_within) for a request whose tokens are counted: its conversation
    /// may be that of a running response.
    ///
    /// # Errors
    /// As [`from_json_within`](Self::from_json_within).
    pub fn from_json_to_count(body: Value, store: &ResponseStore, limits: &Limits) -> Result<Self> {
        Self::read(body, store, limits, false)
    }

    fn read(body: Value, store: &ResponseStore, limits: &Limits, runs: bool) -> Result<Self> {
        let fields = Fields::open(body, &BODY)?;
        let repeated = repeated(fields.values());
        let (tools, sampling): (ToolFields, SamplingFields) = (fields.read()?, fields.read()?);
        let body: Body = fields.into_group()?;
        let logprobs = logprobs(&body.include.unwrap_or_default(), body.top_logprobs, limits)?;
        let conversation = conversation_id(body.conversation, body.previous_response_id.as_deref())?;
        let lock = conversation.as_deref().filter(|_| runs).map(|id| lock(id, store)).transpose()?;
        let mut items = match &conversation {
            Some(id) => conversations::items(id, store)?,
            None => previous(body.previous_response_id, store)?,
        };
        let known = items.len();
        let given = body.input.map_or(Ok(Vec::new()), |input| input::items(input, limits))?;
        items.extend(input::resolved(given, "input", store)?);
        if items.is_empty() {
            return Err(ApiError::missing("input"));
        }
        let Converted { mut messages, left_out } =
            input::conversation(&items, known, limits).map_err(renamed)?;
        let last = messages.pop().ok_or_else(|| ApiError::missing("input"))?;
        if let Some(instructions) = body.instructions {
            messages.insert(0, Message::system(instructions));
        }
        let tools = tools.with(input::declared_tools(&items));
        let (tools, client_tools, turn) = tools.read(&NAMES, limits)?;
        let effort = nested(body.reasoning, "effort").or_else(|| input::setting(&items, "/reasoning/effort"));
        let effort = effort.map_or(Ok(None), self::effort)?;
        let reasons = effort.is_some_and(Effort::reasons);
        let (thinking, effort) = thinking(effort, body.max_reasoning_tokens);
        let format = nested(body.text, "format").or_else(|| input::setting(&items, "/text/format"));
        let format = format.map(|format| response_format_at(&format, NAMES.format)).transpose();
        let response_format = format.map_err(|error| error.with_param(NAMES.format))?.flatten();
        let chat = ChatRequest {
            model: body.model,
            preface: Preface { messages, tools, extra_context: effort.into_iter().collect() },
            turn: TurnOptions { thinking, response_format, logprobs, ..turn },
            sampling: sampling.checked(limits)?,
            max_output_tokens: body.max_output_tokens.map(|most| (NAMES.max_output_tokens, most.get())),
            stream: body.stream.unwrap_or(false).then(StreamOptions::default),
            ignores_end: body.ignore_eos.unwrap_or(false),
            truncates: body.truncation == Some(Truncation::Auto),
            reasons,
            client_tools,
            left_out: noted(left_out),
            ..ChatRequest::new(NAMES, last)
        };
        let (store, background) = (body.store.unwrap_or(true), body.background.unwrap_or(false));
        if background && !store {
            let message = "`background` needs a response that is stored";
            return Err(ApiError::invalid_param("background", message));
        }
        let (conversation, id) = (lock, random_id("resp_"));
        Ok(Self { chat, repeated, items, known, conversation, store, background, id })
    }
}

/// Reads `conversation`: an id, or an object with one.
fn conversation_id(conversation: Option<Value>, previous: Option<&str>) -> Result<Option<String>> {
    const NAME: &str = "conversation";
    let Some(conversation) = conversation else { return Ok(None) };
    if previous.is_some() {
        let message = "`conversation` and `previous_response_id` are both given, expected one of them";
        return Err(ApiError::invalid_param(NAME, message));
    }
    let id = conversation.as_str().or_else(|| conversation["id"].as_str());
    let wrong = || ApiError::unexpected(NAME, shown(&conversation), "an id, or an object with one");
    id.map(|id| Some(id.to_owned())).ok_or_else(wrong)
}

/// Locks a conversation for the response.
fn lock(id: &str, store: &ResponseStore) -> Result<Arc<ConversationLock>> {
    store.lock_conversation(id).map(Arc::new).ok_or_else(|| {
        let message =
            "another response continues this conversation; send the request again when it has ended";
        ApiError::invalid_param("conversation", message).with_code("conversation_locked")
    })
}

/// Number of most probable tokens per token; `None` without log probabilities.
fn logprobs(include: &[String], top: Option<usize>, limits: &Limits) -> Result<Option<usize>> {
    let wanted = top.is_some() || include.iter().any(|data| data == "message.output_text.logprobs");
    chat_completions::logprobs(Some(wanted), top, limits)
}

fn effort(effort: Value) -> Result<Option<Effort>> {
    const NAME: &str = "reasoning.effort";
    word(effort).map_err(|error| ApiError::invalid_param(NAME, format!("`{NAME}`: {error}")))
}

/// Items of the response that `previous_response_id` names, with those before it.
fn previous(id: Option<String>, store: &ResponseStore) -> Result<Vec<Value>> {
    let Some(id) = id else { return Ok(Vec::new()) };
    let stored = store.get(&id).filter(|stored| stored.object["object"] == "response").ok_or_else(|| {
        let message = format!(
            "there is no response {}; it may have been deleted, or removed to make room",
            shown(&id.into())
        );
        let error = ApiError::refused(404, "invalid_request_error", message);
        error.with_param("previous_response_id").with_code("previous_response_not_found")
    })?;
    if stored.object["status"] == "in_progress" {
        let message = "the response that `previous_response_id` names is still in progress";
        return Err(ApiError::invalid_param("previous_response_id", message));
    }
    Ok(stored.items.clone())
}

/// Error with the names of this API in place of those of chat completions.
fn renamed(error: ApiError) -> ApiError {
    error.renamed("messages", "input")
}

/// Fields of the request that the response has too, with their defaults.
fn repeated(fields: &Map<String, Value>) -> Map<String, Value> {
    let defaults = [
        ("background", false.into()),
        ("conversation", Value::Null),
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
        ("top_logprobs", 0.into()),
        ("top_p", Value::Null),
        ("truncation", "disabled".into()),
        ("user", Value::Null),
    ];
    let value = |(key, default): (&str, Value)| {
        let given = match (key, fields.get(key)) {
            ("conversation", Some(Value::String(id))) => Some(json!({"id": id})),
            (_, given) => given.cloned(),
        };
        (key.to_owned(), given.unwrap_or(default))
    };
    defaults.into_iter().map(value).collect()
}
