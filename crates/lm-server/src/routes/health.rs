//! `/health`, `/ready` and `/version`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use crate::response;
use crate::state::SharedApp;

/// Reports whether the engines run.
pub(crate) async fn health(State(app): State<SharedApp>) -> Response {
    status(app.is_healthy(), "an engine has stopped")
}

/// Reports readiness: false during the shutdown.
pub(crate) async fn ready(State(app): State<SharedApp>) -> Response {
    status(app.is_ready(), "shutting down")
}

fn status(is_well: bool, otherwise: &str) -> Response {
    match is_well {
        true => response::json(StatusCode::OK, &json!({"status": "ok"})),
        false => response::json(StatusCode::SERVICE_UNAVAILABLE, &json!({"status": otherwise})),
    }
}

/// Reports the version of the server.
pub(crate) async fn version() -> Response {
    response::json(StatusCode::OK, &json!({"version": env!("CARGO_PKG_VERSION")}))
}
