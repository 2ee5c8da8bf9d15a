//! `/v1/embeddings`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lm_api::EmbeddingRequest;
use serde_json::Value;

use super::body::JsonBody;
use crate::models::Engines;
use crate::response::{ErrorResponse, json};
use crate::state::{App, CancelOnDrop, SharedApp};

/// `POST /v1/embeddings`: computes the embeddings of the inputs.
pub(crate) async fn create(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let request = EmbeddingRequest::from_json_within(body, &app.config.limits.request)?;
    Ok(json(StatusCode::OK, &vectors(&app, request).await?))
}

/// Computes the vectors of a request of any API; a disconnect cancels them.
pub(super) async fn vectors(app: &App, mut request: EmbeddingRequest) -> lm_api::Result<Value> {
    let model = app.models.find(request.model.as_deref())?;
    let cancel = CancelOnDrop(app.cancel.child());
    request.cancel = cancel.0.clone();
    let keep_alive = request.keep_alive;
    let create = move |engines: &Engines| engines.embeddings.create(&request);
    app.prepare(move || model.engines()?.kept(keep_alive, create)).await
}
