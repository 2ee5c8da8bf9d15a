//! `/v1/chat/completions`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lm_openai::ChatRequest;

use super::body::JsonBody;
use super::sse;
use crate::response::{ErrorResponse, json};
use crate::state::{CancelOnDrop, SharedApp};

/// Answers a chat completion, as one object or as a stream of chunks.
pub(crate) async fn create(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let limits = &app.config.limits;
    let mut request = ChatRequest::from_json_within(body, &limits.request)?;
    let completions = app.models.find(request.model.as_deref())?.completions().clone();
    let cancel = CancelOnDrop(app.cancel.child());
    request.turn.cancel = cancel.0.clone();
    request.turn.deadline = app.deadline();
    let is_stream = request.stream.is_some();
    let running = app.prepare(move || completions.start(request)).await?;
    if is_stream {
        return sse::respond(running.into_stream(), cancel, limits.keep_alive).await;
    }
    Ok(json(StatusCode::OK, &running.completion().await?))
}
