//! API keys.

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONNECTION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use lm_api::ApiError;
use sha2::{Digest, Sha256};

use crate::response::ErrorResponse;
use crate::state::SharedApp;

/// Refuses requests without a key, if there are keys: `Authorization: Bearer KEY` or `x-api-key: KEY`.
pub(crate) async fn key(State(app): State<SharedApp>, request: Request, next: Next) -> Response {
    let keys = &app.config.keys;
    let message = match sent(request.headers()) {
        _ if keys.is_empty() => return next.run(request).await,
        Some(key) if keys.accept(key) => return next.run(request).await,
        Some(_) => "the API key is invalid",
        None => "an API key is missing; send it as `Authorization: Bearer KEY`",
    };
    let error = ApiError::refused(401, "authentication_error", message);
    let mut response = ErrorResponse(error.with_code("invalid_api_key")).into_response();
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    // The body is not read, so the connection ends here: a client that reused it would lose its next request.
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// SHA-256 digest of the key of a request that has passed [`key`]; `None` for a server without keys.
pub(crate) fn key_digest(app: &SharedApp, headers: &HeaderMap) -> Option<[u8; 32]> {
    let key = sent(headers).filter(|_| !app.config.keys.is_empty())?;
    Some(Sha256::digest(key).into())
}

/// Key of a request.
fn sent(headers: &HeaderMap) -> Option<&[u8]> {
    let bearer = headers.get(AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.as_bytes().split_at_checked("Bearer ".len())?;
        scheme.eq_ignore_ascii_case(b"Bearer ").then_some(key)
    });
    bearer.or_else(|| headers.get("x-api-key").map(HeaderValue::as_bytes))
}
