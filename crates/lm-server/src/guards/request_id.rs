//! Ids of requests, and their line in the log.

use std::time::Instant;

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use lm_api::random_id;

/// Headers of the id: OpenAI's and Anthropic's clients show it with an error.
const HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("x-request-id"), HeaderName::from_static("request-id")];

/// Gives each response an id, and logs the request without its body and query.
pub(crate) async fn request_id(request: Request, next: Next) -> Response {
    let (began, id) = (Instant::now(), random_id("req_"));
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = next.run(request).await;
    let status = response.status().as_u16();
    let ms = began.elapsed().as_millis();
    tracing::info!(%id, %method, path = ?path, status, ms, "request");
    if let Ok(id) = HeaderValue::from_str(&id) {
        for header in HEADERS {
            response.headers_mut().insert(header, id.clone());
        }
    }
    response
}
