//! Anthropic's `/v1/messages`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lm_api::{AnthropicRequest, MessageWriter};
use serde_json::json;

use super::body::JsonBody;
use super::chat;
use crate::response::{self, ErrorResponse};
use crate::state::SharedApp;

/// Answers with a message, as one object or as a stream of events.
pub(crate) async fn create(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let request = AnthropicRequest::message(body, &app.config.limits.request)?;
    chat::respond(&app, request, MessageWriter::for_request).await
}

/// Counts the tokens of a prompt.
pub(crate) async fn count_tokens(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let request = AnthropicRequest::count(body, &app.config.limits.request)?;
    let tokens = chat::prompt_tokens(&app, request).await?;
    Ok(response::json(StatusCode::OK, &json!({"input_tokens": tokens})))
}
