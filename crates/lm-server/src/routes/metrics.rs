//! `/metrics`.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use lm_api::ApiError;
use prometheus::TEXT_FORMAT;

use crate::response::ErrorResponse;
use crate::state::SharedApp;

/// Writes the metrics of the server.
pub(crate) async fn metrics(State(app): State<SharedApp>) -> Result<Response, ErrorResponse> {
    let text = app.metrics.text(&app.models).map_err(|error| ApiError::server(error.to_string()))?;
    Ok(([(CONTENT_TYPE, TEXT_FORMAT)], text).into_response())
}
