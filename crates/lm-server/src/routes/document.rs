//! `/page/document`: the text of a file that is added to a message in the page.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use lm_api::ApiError;
use serde_json::json;

use super::body::RawBody;
use crate::response::{self, ErrorResponse};
use crate::state::SharedApp;

/// The route, which needs a key as the API does.
pub(crate) fn routes() -> Router<SharedApp> {
    Router::new().route("/page/document", post(read))
}

/// Answers the bytes of a file with its `text`, and its `encoding` or number of `pages`.
async fn read(State(app): State<SharedApp>, RawBody(bytes): RawBody) -> Result<Response, ErrorResponse> {
    let reader = app.config.documents.clone();
    let work = move || reader.read(bytes).map_err(|error| ApiError::invalid_request(error.to_string()));
    Ok(response::json(StatusCode::OK, &json!(app.prepare(work).await?)))
}
