//! `/tokenize`, `/detokenize` and `/apply-template`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lm_api::{ApiError, ChatRequest, Fields, RequestBody};
use lm_session::Engine;
use lm_tokenizer::{TextSegment, TokenId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::body::JsonBody;
use crate::response::{self, ErrorResponse};
use crate::state::SharedApp;

/// Body of `/tokenize`.
pub(super) const TEXT: RequestBody = RequestBody {
    name: "TokenizeRequest",
    groups: &[Text::json_schema],
    unsupported: &[],
    example: r#"{"content": "Hello!"}"#,
};

/// Body of `/detokenize`.
pub(super) const TOKENS: RequestBody = RequestBody {
    name: "DetokenizeRequest",
    groups: &[Tokens::json_schema],
    unsupported: &[],
    example: r#"{"tokens": [1, 2]}"#,
};

#[derive(Deserialize, JsonSchema)]
#[schemars(extend("anyOf" = [{"required": ["content"]}, {"required": ["prompt"]}]))]
struct Text {
    /// Name or alias of a model; the first one if absent.
    model: Option<String>,
    /// The text.
    content: Option<String>,
    /// Name of `content` in vLLM.
    prompt: Option<String>,
    /// Recognises special tokens that are spelled in the text; true if absent.
    parse_special: Option<bool>,
    /// Adds the tokens that `tokenizer.json` puts around a text; false if absent.
    add_special: Option<bool>,
    /// Name of `add_special` in vLLM.
    add_special_tokens: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
struct Tokens {
    /// Name or alias of a model; the first one if absent.
    model: Option<String>,
    /// Token ids.
    tokens: Vec<TokenId>,
}

/// Encodes a text.
pub(crate) async fn tokenize(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let body: Text = Fields::open(body, &TEXT)?.into_group()?;
    let content = body.content.or(body.prompt).ok_or_else(|| ApiError::missing("content"))?;
    let parse_special = body.parse_special.unwrap_or(true);
    let add_special = body.add_special_tokens.or(body.add_special).unwrap_or(false);
    check_length(&content, app.config.limits.request.tokenize_bytes)?;
    let model = app.models.find(body.model.as_deref())?;
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

fn check_length(content: &str, limit: usize) -> Result<(), ApiError> {
    if content.len() <= limit {
        return Ok(());
    }
    let message = format!("`content` has {} bytes, at most {limit} are encoded", content.len());
    Err(ApiError::invalid_param("content", message))
}

/// Decodes token ids; bytes that are not UTF-8 become U+FFFD.
pub(crate) async fn detokenize(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let Tokens { model, tokens } = Fields::open(body, &TOKENS)?.into_group()?;
    let model = app.models.find(model.as_deref())?;
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
    let model = app.models.find(request.model.as_deref())?;
    let rendered = app.prepare(move || model.engines()?.chat.render(&request)).await?;
    Ok(response::json(StatusCode::OK, &json!({"prompt": rendered.text, "count": rendered.ids.len()})))
}
