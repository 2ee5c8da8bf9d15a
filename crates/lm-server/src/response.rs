//! Responses: JSON bodies, and errors of the API.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use lm_api::ApiError;
use serde_json::Value;

/// JSON body.
pub(crate) fn json(status: StatusCode, body: &Value) -> Response {
    let header = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
    (status, [header], Body::from(body.to_string())).into_response()
}

/// Error of a request as a response.
#[derive(Debug)]
pub(crate) struct ErrorResponse(pub ApiError);

impl From<ApiError> for ErrorResponse {
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        let Self(error) = self;
        let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if status.is_server_error() {
            tracing::warn!(%status, message = %error.message, "request failed");
        }
        let mut response = json(status, &error.to_json());
        if let Some(seconds) = error.retry_after_seconds() {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response.extensions_mut().insert(error);
        response
    }
}
