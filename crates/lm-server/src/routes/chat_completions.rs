//! `/v1/chat/completions`.

use axum::extract::State;
use axum::response::Response;
use lm_api::{ChatRequest, ChunkWriter};

use super::body::JsonBody;
use super::chat;
use crate::response::ErrorResponse;
use crate::state::SharedApp;

/// Answers a chat completion, as one object or as a stream of chunks.
pub(crate) async fn create(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let request = ChatRequest::from_json_within(body, &app.config.limits.request)?;
    chat::respond(&app, request, ChunkWriter::for_request).await
}
