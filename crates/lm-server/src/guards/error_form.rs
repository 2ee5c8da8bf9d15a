//! Form of errors.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::Next;
use axum::response::Response;
use lm_api::{ApiError, anthropic_error, ollama_error};
use serde_json::Value;

/// Error object of an API.
type ErrorObject = fn(&ApiError) -> Value;

/// Paths whose errors have another form than those of OpenAI's API.
const FORMS: [(&str, ErrorObject); 2] = [("/v1/messages", anthropic_error), ("/api", ollama_error)];

/// Writes the error of a response in the form of the API that its path belongs to, whoever refused the request.
pub(crate) async fn error_form(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let form = FORMS.iter().find(|(start, _)| path.strip_prefix(start).is_some_and(is_end));
    let form = form.map(|(_, form)| form);
    let response = next.run(request).await;
    match (form, response.extensions().get::<ApiError>()) {
        (Some(form), Some(error)) => {
            let body = Body::from(form(error).to_string());
            let (mut head, _) = response.into_parts();
            head.headers.remove(CONTENT_LENGTH);
            Response::from_parts(head, body)
        }
        _ => response,
    }
}

/// Returns true for the rest of a path after its last whole segment.
fn is_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('/')
}
