//! `/v1/embeddings`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lm_api::EmbeddingRequest;

use super::body::JsonBody;
use crate::response::{ErrorResponse, json};
use crate::state::SharedApp;

/// Computes embeddings.
pub(crate) async fn create(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let request = EmbeddingRequest::from_json_within(body, &app.config.limits.request)?;
    let model = app.models.find(request.model.as_deref())?.clone();
    Ok(json(StatusCode::OK, &app.prepare(move || model.engines()?.embeddings.create(&request)).await?))
}
