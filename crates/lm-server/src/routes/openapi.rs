//! `/openapi.json`.

use std::sync::LazyLock;

use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use crate::openapi::document;

/// Text of the document, identical for all servers of a version.
static TEXT: LazyLock<Bytes> = LazyLock::new(|| document().to_string().into());

/// Shows the OpenAPI document. It needs no key, as in servers made with FastAPI (vLLM's among them), whose
/// users load it into tools that have none: it names no model, no tool and no setting.
pub(crate) async fn show() -> Response {
    ([(CONTENT_TYPE, "application/json")], TEXT.clone()).into_response()
}
