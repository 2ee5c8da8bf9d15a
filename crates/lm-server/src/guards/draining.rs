//! Requests during a shutdown.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use lm_api::ApiError;

use crate::response::ErrorResponse;
use crate::state::SharedApp;

/// Time after which a client may ask again: another server, or this one after its restart.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Error of a request that is incomplete at the start of a shutdown.
pub(crate) fn ending() -> ApiError {
    let mut error = ApiError::refused(503, "unavailable_error", "the server is shutting down");
    error.retry_after = Some(RETRY_AFTER);
    error
}

/// Refuses requests that come after a shutdown has started, and ends their connections.
pub(crate) async fn draining(State(app): State<SharedApp>, request: Request, next: Next) -> Response {
    if !app.is_ending() {
        return next.run(request).await;
    }
    let mut response = ErrorResponse(ending()).into_response();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
