//! `/v1/rerank` and `/rerank`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lm_api::RerankRequest;

use super::body::JsonBody;
use crate::models::Engines;
use crate::response::{ErrorResponse, json};
use crate::state::{CancelOnDrop, SharedApp};

/// Ranks documents by their relevance to a query; a disconnect cancels it.
pub(crate) async fn create(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let mut request = RerankRequest::from_json_within(body, &app.config.limits.request)?;
    let model = app.models.find(request.model.as_deref())?;
    let cancel = CancelOnDrop(app.cancel.child());
    request.cancel = cancel.0.clone();
    let create = move |engines: &Engines| engines.reranker.create(&request);
    let list = app.prepare(move || model.engines()?.kept(None, create)).await?;
    Ok(json(StatusCode::OK, &list))
}
