//! Form of errors.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::Next;
use axum::response::Response;
use lm_api::{ApiError, anthropic_error, ollama_error};
use serde_json::Value;

/// Form of the errors of paths with this prefix.
struct Form {
    start: &'static str,
    object: fn(&ApiError) -> Value,
    /// Name of its schema.
    schema: &'static str,
}

/// Forms other than that of OpenAI's API.
const FORMS: [Form; 2] = [
    Form { start: "/v1/messages", object: anthropic_error, schema: "AnthropicError" },
    Form { start: "/api", object: ollama_error, schema: "OllamaError" },
];

/// Name of the schema of a path's errors.
pub(crate) fn error_schema(path: &str) -> &'static str {
    form(path).map_or("Error", |form| form.schema)
}

/// Writes the error of a response in the form of its path's API, for every layer that can refuse a request.
pub(crate) async fn error_form(request: Request, next: Next) -> Response {
    let form = form(request.uri().path());
    let response = next.run(request).await;
    match (form, response.extensions().get::<ApiError>()) {
        (Some(form), Some(error)) => {
            let body = Body::from((form.object)(error).to_string());
            let (mut head, _) = response.into_parts();
            head.headers.remove(CONTENT_LENGTH);
            Response::from_parts(head, body)
        }
        _ => response,
    }
}

fn form(path: &str) -> Option<&'static Form> {
    FORMS.iter().find(|form| path.strip_prefix(form.start).is_some_and(is_end))
}

/// Returns true for the rest of a path after its last whole segment.
fn is_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('/')
}
