//! `/tokenize`, `/detokenize` and `/apply-template`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lm_api::{ApiError, ChatRequest};
use lm_session::Engine;
use lm_tokenizer::{TextSegment, TokenId};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::body::JsonBody;
use crate::response::{self, ErrorResponse};
use crate::state::SharedApp;

/// Body of `/tokenize`.
#[derive(Deserialize)]
struct Text {
    model: Option<String>,
    /// The text; vLLM's name of it is `prompt`.
    #[serde(alias = "prompt")]
    content: String,
    /// Recognises special tokens that are spelled in the text.
    #[serde(default = "default_true")]
    parse_special: bool,
    /// Adds the tokens that `tokenizer.json` puts around a text.
    #[serde(default, alias = "add_special_tokens")]
    add_special: bool,
}

/// Body of `/detokenize`.
#[derive(Deserialize)]
struct Tokens {
    model: Option<String>,
    tokens: Vec<TokenId>,
}

fn default_true() -> bool {
    true
}

/// Encodes a text.
pub(crate) async fn tokenize(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let Text { model, content, parse_special, add_special } = read(body)?;
    let model = app.models.find(model.as_deref())?.clone();
    let ids = app.prepare(move || {
        let segment =
            if parse_special { TextSegment::Template(&content) } else { TextSegment::Content(&content) };
        let tokenizer = model.engines()?.engine.tokenizer();
        let ids = match add_special {
            true => tokenizer.encode_with_special_tokens(segment),
            false => tokenizer.encode_segments(&[segment]),
        };
        ids.map_err(|error| ApiError::invalid_param("content", error.to_string()))
    });
    let ids = ids.await?;
    Ok(response::json(StatusCode::OK, &json!({"count": ids.len(), "tokens": ids})))
}

/// Decodes token ids; bytes that are no text become U+FFFD.
pub(crate) async fn detokenize(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let Tokens { model, tokens } = read(body)?;
    let model = app.models.find(model.as_deref())?.clone();
    let text = app.prepare(move || decoded(&model.engines()?.engine, &tokens)).await?;
    Ok(response::json(StatusCode::OK, &json!({"content": text, "prompt": text})))
}

fn decoded(engine: &Engine, tokens: &[TokenId]) -> Result<String, ApiError> {
    let width = engine.model_info().logits_width;
    if let Some(id) = tokens.iter().find(|&&id| id as usize >= width) {
        let message = format!("`tokens` has the id {id}, the model has ids below {width}");
        return Err(ApiError::invalid_param("tokens", message));
    }
    let bytes: Vec<u8> = tokens.iter().flat_map(|&id| engine.tokenizer().token_bytes(id)).copied().collect();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Renders the prompt of a chat completion.
pub(crate) async fn apply_template(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let request = ChatRequest::from_json_within(body, &app.config.limits.request)?;
    let model = app.models.find(request.model.as_deref())?.clone();
    let rendered = app.prepare(move || model.engines()?.chat.render(&request)).await?;
    Ok(response::json(StatusCode::OK, &json!({"prompt": rendered.text, "count": rendered.ids.len()})))
}

fn read<T: DeserializeOwned>(body: Value) -> Result<T, ApiError> {
    serde_json::from_value(body).map_err(|error| ApiError::invalid_request(error.to_string()))
}
