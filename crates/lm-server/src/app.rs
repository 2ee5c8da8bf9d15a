//! Router: routes, guards and limits.

use std::any::Any;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use lm_api::ApiError;
use tower_http::catch_panic::CatchPanicLayer;

use crate::guards;
use crate::metrics::count;
use crate::page;
use crate::response::ErrorResponse;
use crate::routes::{self, ROUTES};
use crate::state::SharedApp;

/// Router of a server. Layers that are added later are further out.
pub(crate) fn router(app: &SharedApp) -> Router {
    let guarded = table(true)
        .merge(routes::page_routes())
        .method_not_allowed_fallback(wrong_method)
        .fallback(unknown_path)
        .layer(from_fn_with_state(app.clone(), guards::key))
        .layer(from_fn_with_state(app.clone(), guards::draining));
    table(false)
        .merge(page::routes())
        .method_not_allowed_fallback(wrong_method)
        .merge(guarded)
        .layer(DefaultBodyLimit::max(app.config.limits.body_bytes))
        .layer(guards::cors(app))
        .layer(from_fn_with_state(app.clone(), guards::origin))
        .layer(from_fn_with_state(app.clone(), guards::host))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(axum::middleware::from_fn(guards::error_form))
        .layer(from_fn_with_state(app.clone(), count))
        .layer(axum::middleware::from_fn(guards::request_id))
        .with_state(app.clone())
}

/// Routes of the table with or without the need of a key.
fn table(needs_key: bool) -> Router<SharedApp> {
    let routes = ROUTES.iter().filter(|route| route.needs_key == needs_key);
    routes
        .fold(Router::new(), |router, route| router.route(route.path, (route.handler)(route.method.filter())))
}

async fn unknown_path(uri: Uri) -> ErrorResponse {
    let path = uri.path();
    let message = format!("there is no path {path:?}; {}", advice(path));
    ApiError::refused(404, "not_found_error", message).into()
}

/// Next step after an unknown path: clients join the paths of their API to the base address that the user
/// gives.
fn advice(path: &str) -> &'static str {
    let is_route = |path: &str| ROUTES.iter().any(|route| route.path == path);
    match path.strip_prefix("/v1") {
        Some(rest) if is_route(rest) => "the base address of this client goes without /v1",
        None if is_route(&format!("/v1{path}")) => "the base address of this client ends in /v1",
        _ => {
            "the API is under /v1, as in /v1/chat/completions, and Ollama's under /api; /openapi.json lists the paths"
        }
    }
}

async fn wrong_method(method: Method, uri: Uri) -> ErrorResponse {
    let message = format!("{:?} does not take the method {method}", uri.path());
    ApiError::refused(405, "invalid_request_error", message).into()
}

/// Response to a request whose handler panicked. The text of a panic is only in the log, written by the panic
/// itself.
fn panicked(_: Box<dyn Any + Send>) -> Response {
    ErrorResponse(ApiError::server("the request ended in an internal error")).into_response()
}
