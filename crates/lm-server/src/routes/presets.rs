//! `/page/presets`: settings by name, for the page's menu.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use serde_json::json;

use crate::response;
use crate::state::SharedApp;

/// The route, which needs a key as the API does.
pub(crate) fn routes() -> Router<SharedApp> {
    Router::new().route("/page/presets", get(list))
}

async fn list(State(app): State<SharedApp>) -> Response {
    response::json(StatusCode::OK, &json!({"data": app.config.presets}))
}
