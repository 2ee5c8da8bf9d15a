//! `/v1/models`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lm_session::MediaKind;
use serde_json::{Value, json};

use super::path_name::PathName;
use crate::models::ServedModel;
use crate::response::{self, ErrorResponse};
use crate::state::SharedApp;

/// Lists the models and their aliases.
pub(crate) async fn list(State(app): State<SharedApp>) -> Response {
    let models = app.models.all();
    let objects = models.iter().flat_map(|model| model.names().map(|name| object(model, name)));
    let data: Vec<Value> = objects.collect();
    let downloads = app.config.downloads.is_some();
    response::json(StatusCode::OK, &json!({"object": "list", "data": data, "downloads": downloads}))
}

/// Shows one model; names may contain slashes.
pub(crate) async fn show(
    State(app): State<SharedApp>,
    PathName(name): PathName,
) -> Result<Response, ErrorResponse> {
    Ok(response::json(StatusCode::OK, &object(&app.models.find(Some(&name))?, &name)))
}

fn object(model: &ServedModel, name: &str) -> Value {
    let media = MediaKind::ALL.into_iter().filter(|kind| model.reads(*kind)).map(|kind| match kind {
        MediaKind::Image => "image",
        MediaKind::Audio => "audio",
    });
    let modalities: Vec<&str> = ["text"].into_iter().chain(media).collect();
    json!({
        "id": name,
        "object": "model",
        "created": model.created(),
        "owned_by": "lm",
        "input_modalities": modalities,
        "bytes": model.bytes(),
        "loaded": model.is_loaded(),
        "max_model_len": model.loaded().map(|loaded| loaded.engine.context_tokens()),
        "thinking": model.loaded().map(|loaded| loaded.chat.thinks()),
    })
}
