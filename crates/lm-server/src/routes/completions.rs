//! `/v1/completions`.

use axum::extract::State;
use axum::response::Response;
use lm_api::CompletionRequest;

use super::body::JsonBody;
use super::chat;
use crate::models::Engines;
use crate::response::ErrorResponse;
use crate::state::SharedApp;

/// Continues prompts, as one object or as a stream of pieces.
pub(crate) async fn create(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let mut request = CompletionRequest::from_json_within(body, &app.config.limits.request)?;
    let options = request.options.clone();
    let start = move |engines: &Engines, options| {
        request.options = options;
        engines.chat.complete(request)
    };
    chat::run(&app, options, start).await
}
