//! `/v1/responses`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lm_api::{ApiError, ResponsesRequest, ResponsesWriter};
use serde_json::json;

use super::body::JsonBody;
use super::chat;
use super::path_name::PathName;
use crate::response::{self, ErrorResponse};
use crate::state::SharedApp;

/// Answers a request, as one object or as a stream of events.
pub(crate) async fn create(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let store = app.responses.clone();
    let request = ResponsesRequest::from_json_within(body, &store, &app.config.limits.request)?;
    let chat = request.chat.clone();
    chat::respond(&app, chat, move |_, model| ResponsesWriter::new(request, model, &store)).await
}

/// Shows a stored response.
pub(crate) async fn show(
    State(app): State<SharedApp>,
    PathName(id): PathName,
) -> Result<Response, ErrorResponse> {
    let stored = app.responses.get(&id).ok_or_else(|| unknown(&id))?;
    Ok(response::json(StatusCode::OK, &stored.object))
}

/// `DELETE /v1/responses/{id}`: deletes a stored response; 404 if the id is unknown.
pub(crate) async fn delete(
    State(app): State<SharedApp>,
    PathName(id): PathName,
) -> Result<Response, ErrorResponse> {
    if !app.responses.remove(&id) {
        return Err(unknown(&id).into());
    }
    Ok(response::json(StatusCode::OK, &json!({"id": id, "object": "response", "deleted": true})))
}

fn unknown(id: &str) -> ApiError {
    let message = format!("there is no response {:?}", id.chars().take(100).collect::<String>());
    ApiError::refused(404, "invalid_request_error", message)
}
