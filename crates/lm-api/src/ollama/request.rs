//! Request bodies of `/api/chat` and `/api/generate`.

use lm_conversation::{Message, Preface, ResponseFormat, ThinkingConfig, ThinkingMode, TurnOptions};
use serde_json::{Value, json};

use super::fields::{CHAT, Chat, Common, EMBED, GENERATE, Generate, NAMES};
use super::keep_alive::KeepAlive;
use super::messages;
use super::options;
use crate::chat_completions::logprobs;
use crate::completions::CompletionRequest;
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
        let fields = Fields::open(body, &CHAT)?;
        let (common, chat): (Common, Chat) = (fields.read()?, fields.into_group()?);
        request(common, messages::read(chat.messages, limits)?, limits)
    }

    /// Checks a body of `/api/chat` or `/api/generate` that has no message, and only loads the model.
    ///
    /// # Errors
    /// As [`OllamaRequest::chat`].
    pub fn check(body: Value, limits: &Limits) -> Result<()> {
        request(Fields::open(body, &GENERATE)?.into_group()?, vec![Message::user("")], limits).map(drop)
    }

    /// Returns true if a body of `/api/generate` is without the template: [`text`](Self::text) reads it.
    pub fn is_text(body: &Value) -> bool {
        body["raw"] == true || body["suffix"].as_str().is_some_and(|suffix| !suffix.is_empty())
    }

    /// Reads a body of `/api/generate` with `raw` or `suffix`: the prompt is continued as it is, or up to the
    /// suffix.
    ///
    /// ```
    /// use lm_api::{Limits, OllamaRequest};
    /// use serde_json::json;
    ///
    /// let body = json!({"prompt": "def add(a, b):", "suffix": "    return sum"});
    /// assert!(OllamaRequest::is_text(&body));
    /// let request = OllamaRequest::text(body, &Limits::default())?;
    /// assert_eq!(request.suffix.as_deref(), Some("    return sum"));
    /// # Ok::<(), lm_api::ApiError>(())
    /// ```
    ///
    /// # Errors
    /// As [`OllamaRequest::chat`]; when it has a field of messages.
    pub fn text(body: Value, limits: &Limits) -> Result<CompletionRequest> {
        let fields = Fields::open(body, &GENERATE)?;
        let (common, body): (Common, Generate) = (fields.read()?, fields.into_group()?);
        let of_messages = [
            ("system", body.system.is_some_and(|system| !system.is_empty())),
            ("images", body.images.is_some_and(|images| images != json!([]))),
            ("think", common.think.as_ref().is_some_and(|think| *think != false)),
            ("tools", common.tools.as_ref().is_some_and(|tools| !tools.is_empty())),
        ];
        if let Some((name, _)) = of_messages.iter().find(|(_, is_set)| *is_set) {
            let message = format!("`{name}` needs the template, which `raw` and `suffix` leave out");
            return Err(ApiError::invalid_param(*name, message));
        }
        let prompt = body.prompt.ok_or_else(|| ApiError::missing("prompt"))?;
        let options = request(common, vec![Message::user("")], limits)?;
        CompletionRequest::of_text(prompt, body.suffix.filter(|suffix| !suffix.is_empty()), options)
    }

    /// Reads a body of `/api/generate`: a prompt is a message of the user.
    ///
    /// # Errors
    /// As [`OllamaRequest::chat`]; for a body without the template.
    pub fn generate(body: Value, limits: &Limits) -> Result<ChatRequest> {
        if Self::is_text(&body) {
            let name = if body["raw"] == true { "raw" } else { "suffix" };
            return Err(ApiError::invalid_param(name, format!("`{name}` is for a text, not a message")));
        }
        let fields = Fields::open(body, &GENERATE)?;
        let (common, body): (Common, Generate) = (fields.read()?, fields.into_group()?);
        let images = messages::images(body.images, "images")?;
        let prompt = body.prompt.ok_or_else(|| ApiError::missing("prompt"))?;
        let system = body.system.filter(|system| !system.is_empty());
        let mut conversation: Vec<_> = system.map(Message::system).into_iter().collect();
        let content = messages::with_images(images, prompt.into());
        conversation.extend(read_messages(vec![json!({"role": "user", "content": content})], limits)?);
        request(common, conversation, limits)
    }
}

fn request(fields: Common, mut conversation: Vec<Message>, limits: &Limits) -> Result<ChatRequest> {
    let last = conversation.pop();
    let last = last.ok_or_else(|| ApiError::invalid_param("messages", "`messages` is empty"))?;
    let (tools, client_tools) = tools(fields.tools.unwrap_or_default(), &NAMES, limits)?;
    let (thinking, effort) = thinking(fields.think)?;
    let mut request = ChatRequest {
        model: fields.model,
        preface: Preface { messages: conversation, tools, extra_context: effort.into_iter().collect() },
        turn: TurnOptions {
            response_format: format(fields.format)?,
            thinking,
            logprobs: logprobs(fields.logprobs, fields.top_logprobs, limits)?,
            ..TurnOptions::default()
        },
        stream: fields.stream.unwrap_or(true).then(StreamOptions::default),
        truncates: fields.truncate.unwrap_or(true),
        keep_alive: KeepAlive::read(fields.keep_alive)?,
        client_tools,
        ..ChatRequest::new(NAMES, last)
    };
    options::set(&mut request, fields.options.unwrap_or_default(), limits)?;
    Ok(request)
}

/// Reads `think`: a boolean, or an effort, which some templates read.
fn thinking(think: Option<Value>) -> Result<(ThinkingConfig, Option<(String, Value)>)> {
    let (mode, effort) = match think {
        None => (ThinkingMode::Default, None),
        Some(Value::Bool(true)) => (ThinkingMode::On, None),
        Some(Value::Bool(false)) => (ThinkingMode::Off, None),
        Some(effort) if ["low", "medium", "high"].iter().any(|known| effort == *known) => {
            (ThinkingMode::On, Some(("reasoning_effort".to_owned(), effort)))
        }
        Some(other) => {
            let expected = r#"a boolean, "low", "medium" or "high""#;
            return Err(ApiError::unexpected("think", shown(&other), expected));
        }
    };
    Ok((ThinkingConfig { mode, max_tokens: None }, effort))
}

/// Reads `format`: `json`, or a schema.
fn format(format: Option<Value>) -> Result<Option<ResponseFormat>> {
    match format {
        None => Ok(None),
        Some(Value::String(word)) if word.is_empty() => Ok(None),
        Some(Value::String(word)) if word == "json" => Ok(Some(ResponseFormat::JsonObject)),
        Some(schema @ Value::Object(_)) => Ok(Some(ResponseFormat::JsonSchema(schema))),
        Some(other) => Err(ApiError::unexpected("format", shown(&other), "\"json\" or a JSON schema")),
    }
}
