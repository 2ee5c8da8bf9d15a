//! Ollama's API.

use std::time::Instant;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use lm_api::{ApiError, OllamaRequest, OllamaWriter, ollama_embed, ollama_embeddings, ollama_time};
use lm_session::ModelInfo;
use serde_json::{Value, json};

use super::body::JsonBody;
use super::{chat, embeddings};
use crate::models::{Engines, ServedModel};
use crate::response::{self, ErrorResponse};
use crate::state::SharedApp;

/// Routes under `/api`.
pub(crate) fn routes() -> Router<SharedApp> {
    Router::new()
        .route("/api/chat", post(converse))
        .route("/api/generate", post(generate))
        .route("/api/embed", post(embed))
        .route("/api/tags", get(tags))
        .route("/api/show", post(show))
        .route("/api/version", get(super::health::version))
}

async fn converse(State(app): State<SharedApp>, JsonBody(body): JsonBody) -> Result<Response, ErrorResponse> {
    let request = OllamaRequest::chat(body, &app.config.limits.request)?;
    chat::respond(&app, request, OllamaWriter::chat).await
}

async fn generate(State(app): State<SharedApp>, JsonBody(body): JsonBody) -> Result<Response, ErrorResponse> {
    let request = OllamaRequest::generate(body, &app.config.limits.request)?;
    chat::respond(&app, request, OllamaWriter::generate).await
}

async fn embed(State(app): State<SharedApp>, JsonBody(body): JsonBody) -> Result<Response, ErrorResponse> {
    let began = Instant::now();
    let request = ollama_embed(body, &app.config.limits.request)?;
    let list = embeddings::vectors(&app, request).await?;
    Ok(response::json(StatusCode::OK, &ollama_embeddings(&list, began)))
}

/// Lists the models and their aliases.
async fn tags(State(app): State<SharedApp>) -> Response {
    let models = app.models.iter().flat_map(|model| model.names().map(|name| listed(model, name)));
    let models: Vec<Value> = models.collect();
    response::json(StatusCode::OK, &json!({"models": models}))
}

/// Entry of a model; what only its files tell is null until it is loaded.
fn listed(model: &ServedModel, name: &str) -> Value {
    let info = model.loaded().map(|loaded| loaded.engine.model_info());
    json!({
        "name": name,
        "model": name,
        "modified_at": ollama_time(model.created()),
        "size": info.map(|info| info.weight_bytes),
        "digest": info.map(|info| format!("{:016x}", info.checksum)),
        "details": info.map(details),
    })
}

fn details(info: &ModelInfo) -> Value {
    json!({
        "family": info.architecture,
        "families": [info.architecture],
        "parameter_size": format!("{:.1}M", info.parameters as f64 / 1e6),
    })
}

/// Shows the model that a body names as `model`, or `name`.
async fn show(State(app): State<SharedApp>, JsonBody(body): JsonBody) -> Result<Response, ErrorResponse> {
    let name = body.get("model").or_else(|| body.get("name")).and_then(Value::as_str);
    let name = name.ok_or_else(|| ApiError::invalid_param("model", "`model` is missing or no text"))?;
    let model = app.models.find(Some(name))?.clone();
    let object = app.prepare(move || Ok(shown(model.engines()?, model.created()))).await?;
    Ok(response::json(StatusCode::OK, &object))
}

fn shown(engines: &Engines, created: u64) -> Value {
    let info = engines.engine.model_info();
    json!({
        "modified_at": ollama_time(created),
        "details": details(info),
        "model_info": {
            "general.architecture": info.architecture,
            "general.parameter_count": info.parameters,
            format!("{}.context_length", info.architecture): engines.engine.context_tokens(),
            format!("{}.embedding_length", info.architecture): info.hidden_size,
        },
        "capabilities": ["completion", "tools"],
    })
}
