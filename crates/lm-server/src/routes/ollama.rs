//! Ollama's API.

use std::time::Instant;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use lm_api::{ApiError, OllamaRequest, OllamaWriter, ollama_embed, ollama_embeddings, ollama_time};
use serde_json::{Value, json};

use super::body::JsonBody;
use super::chat;
use crate::models::ServedModel;
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
    let embeddings = app.models.find(request.model.as_deref())?.embeddings().clone();
    let list = app.prepare(move || embeddings.create(&request)).await?;
    Ok(response::json(StatusCode::OK, &ollama_embeddings(&list, began)))
}

/// Lists the models and their aliases.
async fn tags(State(app): State<SharedApp>) -> Response {
    let models = app.models.iter().flat_map(|model| model.names().map(|name| listed(model, name)));
    let models: Vec<Value> = models.collect();
    response::json(StatusCode::OK, &json!({"models": models}))
}

fn listed(model: &ServedModel, name: &str) -> Value {
    let info = model.engine().model_info();
    json!({
        "name": name,
        "model": name,
        "modified_at": ollama_time(model.created()),
        "size": info.weight_bytes,
        "digest": format!("{:016x}", info.checksum),
        "details": details(model),
    })
}

fn details(model: &ServedModel) -> Value {
    let info = model.engine().model_info();
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
    let model = app.models.find(Some(name))?;
    let info = model.engine().model_info();
    let object = json!({
        "modified_at": ollama_time(model.created()),
        "details": details(model),
        "model_info": {
            "general.architecture": info.architecture,
            "general.parameter_count": info.parameters,
            format!("{}.context_length", info.architecture): model.engine().context_tokens(),
            format!("{}.embedding_length", info.architecture): info.hidden_size,
        },
        "capabilities": ["completion", "tools"],
    });
    Ok(response::json(StatusCode::OK, &object))
}
