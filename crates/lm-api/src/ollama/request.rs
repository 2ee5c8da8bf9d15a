//! Request bodies of `/api/chat` and `/api/generate`.

use lm_conversation::{Message, Preface, ResponseFormat, ThinkingConfig, ThinkingMode, TurnOptions};
use serde_json::{Map, Value, json};

use super::fields::{CHAT, EMBED, GENERATE, NAMES};
use super::keep_alive::KeepAlive;
use super::messages;
use super::options;
use crate::error::{ApiError, Result};
use crate::fields::{Fields, shown};
use crate::limits::Limits;
use crate::messages::messages as read_messages;
use crate::request::{ChatRequest, StreamOptions};
use crate::request_body::RequestBody;
use crate::tools::tools;

/// Reader of the bodies of `/api/chat` and `/api/generate`. Unknown fields are ignored.
#[derive(Debug)]
pub struct OllamaRequest;

impl OllamaRequest {
    /// Body of `/api/chat`.
    pub const CHAT: &RequestBody = &CHAT;
    /// Body of `/api/generate`.
    pub const GENERATE: &RequestBody = &GENERATE;
    /// Body of `/api/embed`.
    pub const EMBED: &RequestBody = &EMBED;

    /// Reads a body of `/api/chat`.
    ///
    /// ```
    /// use lm_api::{Limits, OllamaRequest};
    /// use serde_json::json;
    ///
    /// let body = json!({"model": "any", "messages": [{"role": "user", "content": "Hi."}], "options": {"num_predict": 9}});
    /// let request = OllamaRequest::chat(body, &Limits::default())?;
    /// assert_eq!((request.max_output_tokens, request.stream.is_some()), (Some(("options.num_predict", 9)), true));
    /// # Ok::<(), lm_api::ApiError>(())
    /// ```
    ///
    /// # Errors
    /// When a field is invalid or not supported; [`ApiError::param`] names it.
    pub fn chat(body: Value, limits: &Limits) -> Result<ChatRequest> {
        let mut fields = Fields::open(body, &CHAT)?;
        let conversation = messages::read(fields.required("messages")?, limits)?;
        request(fields, conversation, limits)
    }

    /// Reads a body of `/api/generate`: a prompt is a message of the user.
    ///
    /// # Errors
    /// As [`OllamaRequest::chat`].
    pub fn generate(body: Value, limits: &Limits) -> Result<ChatRequest> {
        let mut fields = Fields::open(body, &GENERATE)?;
        let mut images: Map<String, Value> =
            fields.take("images").map(|images| ("images".to_owned(), images)).into_iter().collect();
        let images = messages::images(&mut images, "images")?;
        let prompt: String = fields.required("prompt")?;
        let system = fields.get::<String>("system")?.filter(|system| !system.is_empty());
        let mut conversation: Vec<_> = system.map(Message::system).into_iter().collect();
        let content = messages::with_images(images, prompt.into());
        conversation.extend(read_messages(json!([{"role": "user", "content": content}]), limits)?);
        request(fields, conversation, limits)
    }
}

fn request(mut fields: Fields, mut conversation: Vec<Message>, limits: &Limits) -> Result<ChatRequest> {
    let fields = &mut fields;
    let last = conversation.pop();
    let last = last.ok_or_else(|| ApiError::invalid_param("messages", "`messages` is empty"))?;
    let tools = fields.take("tools").map(|value| tools(value, &NAMES, limits)).transpose()?;
    let options = options::read(fields.get("options")?.unwrap_or_default(), limits)?;
    let (thinking, effort) = thinking(fields)?;
    let turn = TurnOptions { response_format: format(fields)?, thinking, ..TurnOptions::default() };
    Ok(ChatRequest {
        names: NAMES,
        model: fields.get("model")?,
        preface: Preface {
            messages: conversation,
            tools: tools.unwrap_or_default(),
            extra_context: effort.into_iter().collect(),
        },
        last,
        turn,
        sampling: options.sampling,
        stop: options.stop,
        max_output_tokens: options.max_output_tokens,
        choices: 1,
        stream: fields.get("stream")?.unwrap_or(true).then(StreamOptions::default),
        dialect: None,
        continues: false,
        min_output_tokens: 0,
        ignores_end: false,
        keep_alive: KeepAlive::read(fields.take("keep_alive"))?,
    })
}

/// Reads `think`: a boolean, or an effort, which some templates read.
fn thinking(fields: &mut Fields) -> Result<(ThinkingConfig, Option<(String, Value)>)> {
    let (mode, effort) = match fields.take("think") {
        None => (ThinkingMode::Default, None),
        Some(Value::Bool(true)) => (ThinkingMode::On, None),
        Some(Value::Bool(false)) => (ThinkingMode::Off, None),
        Some(effort) if ["low", "medium", "high"].iter().any(|known| effort == *known) => {
            (ThinkingMode::On, Some(("reasoning_effort".to_owned(), effort)))
        }
        Some(other) => {
            let message =
                format!("`think` is {}, expected a boolean, \"low\", \"medium\" or \"high\"", shown(&other));
            return Err(ApiError::invalid_param("think", message));
        }
    };
    Ok((ThinkingConfig { mode, max_tokens: None }, effort))
}

/// Reads `format`: `json`, or a schema.
fn format(fields: &mut Fields) -> Result<Option<ResponseFormat>> {
    match fields.take("format") {
        None => Ok(None),
        Some(Value::String(word)) if word.is_empty() => Ok(None),
        Some(Value::String(word)) if word == "json" => Ok(Some(ResponseFormat::JsonObject)),
        Some(schema @ Value::Object(_)) => Ok(Some(ResponseFormat::JsonSchema(schema))),
        Some(other) => {
            let message = format!("`format` is {}, expected \"json\" or a JSON schema", shown(&other));
            Err(ApiError::invalid_param("format", message))
        }
    }
}
