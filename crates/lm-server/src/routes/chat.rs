//! Answers to requests of any API.

use axum::http::StatusCode;
use axum::response::Response;
use lm_api::{ChatRequest, ResponseWriter};

use super::sse;
use crate::response::{ErrorResponse, json};
use crate::state::{App, CancelOnDrop};

/// Answers a request, as one object or as a stream of frames.
pub(crate) async fn respond<W: ResponseWriter>(
    app: &App,
    mut request: ChatRequest,
    writer: impl FnOnce(&ChatRequest, &str) -> W + Send + 'static,
) -> Result<Response, ErrorResponse> {
    let chat = app.models.find(request.model.as_deref())?.chat().clone();
    let cancel = CancelOnDrop(app.cancel.child());
    request.turn.cancel = cancel.0.clone();
    request.turn.deadline = app.deadline();
    let is_stream = request.stream.is_some();
    let running = app.prepare(move || chat.start(request, writer)).await?;
    if is_stream {
        return sse::respond(running.into_stream(), cancel, app.config.limits.keep_alive).await;
    }
    Ok(json(StatusCode::OK, &running.object().await?))
}
