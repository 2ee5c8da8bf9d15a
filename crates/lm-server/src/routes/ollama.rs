//! Ollama's API.

use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lm_api::{
    ApiError, Fields, KeepAlive, OllamaLoad, OllamaRequest, OllamaWriter, RequestBody, ollama_embed,
    ollama_embeddings, ollama_time,
};
use lm_session::{Engine, MediaKind, ModelInfo, SessionConfig};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::JsonBody;
use super::{chat, embeddings};
use crate::models::{Engines, ServedModel, seconds_since_1970};
use crate::response::{self, ErrorResponse};
use crate::state::{App, SharedApp};

/// Body of `/api/show`.
pub(super) const SHOW: RequestBody = RequestBody {
    name: "OllamaShowRequest",
    groups: &[Show::json_schema],
    unsupported: &[],
    example: r#"{"model": "pocket"}"#,
};

#[derive(Deserialize, JsonSchema)]
#[schemars(extend("anyOf" = [{"required": ["model"]}, {"required": ["name"]}]))]
pub(super) struct Show {
    /// Name or alias of a model.
    model: Option<String>,
    /// Older name of `model`.
    name: Option<String>,
}

impl Show {
    /// Name of the model.
    pub fn name(self) -> Option<String> {
        self.model.or(self.name)
    }
}

/// Answers `/api/chat`.
pub(super) async fn converse(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    if OllamaLoad::Chat.is(&body) {
        return load(&app, OllamaLoad::Chat, &body).await;
    }
    let request = OllamaRequest::chat(body, &app.config.limits.request)?;
    chat::respond(&app, request, OllamaWriter::chat).await
}

/// Answers `/api/generate`.
pub(super) async fn generate(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    if OllamaLoad::Generate.is(&body) {
        return load(&app, OllamaLoad::Generate, &body).await;
    }
    if OllamaRequest::is_text(&body) {
        return continue_text(&app, body).await;
    }
    let request = OllamaRequest::generate(body, &app.config.limits.request)?;
    chat::respond(&app, request, OllamaWriter::generate).await
}

/// Continues a prompt without the template.
async fn continue_text(app: &App, body: Value) -> Result<Response, ErrorResponse> {
    let mut request = OllamaRequest::text(body, &app.config.limits.request)?;
    let options = request.options.clone();
    let start = move |engines: &Engines, options| {
        request.options = options;
        engines.chat.continue_text(request, OllamaWriter::generate)
    };
    chat::run(app, options, start).await
}

/// Loads a model, or unloads it if its keep-alive is zero.
async fn load(app: &App, endpoint: OllamaLoad, body: &Value) -> Result<Response, ErrorResponse> {
    if endpoint != OllamaLoad::Embedding {
        OllamaRequest::check(body.clone(), &app.config.limits.request)?;
    }
    let keep_alive = KeepAlive::of(body)?;
    let model = app.models.find(body.get("model").and_then(Value::as_str))?;
    let object = endpoint.response(model.name(), keep_alive);
    let is_unloaded = keep_alive.is_some_and(KeepAlive::is_zero);
    let work = move || match model.loaded() {
        None if is_unloaded => Ok(()),
        Some(engines) if is_unloaded => engines.keep(keep_alive),
        _ => model.engines()?.kept(keep_alive, |Engines { engine, .. }| {
            // An engine that has unloaded its model loads it again for a request.
            let session = engine.session(SessionConfig::default());
            session.and_then(|mut session| session.prefill(&[0])).map_err(lm_conversation::Error::from)?;
            Ok(())
        }),
    };
    app.prepare(work).await?;
    Ok(response::json(StatusCode::OK, &object))
}

/// Version of Ollama whose API this is: clients refuse older ones.
const VERSION: &str = "0.9.0";

/// Reports the version of the API.
pub(super) async fn version() -> Response {
    response::json(StatusCode::OK, &json!({"version": VERSION}))
}

/// Body of `/api/embeddings`.
pub(super) const EMBEDDING: RequestBody = RequestBody {
    name: "OllamaEmbeddingRequest",
    groups: &[Prompt::json_schema],
    unsupported: &[],
    example: r#"{"prompt": "Hello!"}"#,
};

#[derive(Deserialize, JsonSchema)]
struct Prompt {
    /// Name or alias of a model; the server's first model if absent.
    #[serde(rename = "model")]
    _model: Option<String>,
    /// The text.
    prompt: String,
}

/// Computes the embedding of one text, in the older form of the API.
pub(super) async fn embedding(
    State(app): State<SharedApp>,
    JsonBody(mut body): JsonBody,
) -> Result<Response, ErrorResponse> {
    if OllamaLoad::Embedding.is(&body) {
        return load(&app, OllamaLoad::Embedding, &body).await;
    }
    let Prompt { prompt, .. } = Fields::open(body.clone(), &EMBEDDING)?.into_group()?;
    body["input"] = prompt.into();
    let request = ollama_embed(body, &app.config.limits.request)?;
    let list = embeddings::vectors(&app, request).await?;
    Ok(response::json(StatusCode::OK, &json!({"embedding": list["data"][0]["embedding"]})))
}

/// Computes embeddings.
pub(super) async fn embed(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let began = Instant::now();
    let request = ollama_embed(body, &app.config.limits.request)?;
    let list = embeddings::vectors(&app, request).await?;
    Ok(response::json(StatusCode::OK, &ollama_embeddings(&list, began)))
}

/// Lists the models and their aliases.
pub(super) async fn tags(State(app): State<SharedApp>) -> Response {
    let models = app.models.all();
    let models = models.iter().flat_map(|model| model.names().map(|name| listed(model, name)));
    let models: Vec<Value> = models.collect();
    response::json(StatusCode::OK, &json!({"models": models}))
}

/// Lists the models that are in memory.
pub(super) async fn ps(State(app): State<SharedApp>) -> Response {
    let models = app.models.all();
    let running = models.iter().filter_map(|model| running(model, &model.loaded()?.engine));
    let models: Vec<Value> = running.collect();
    response::json(StatusCode::OK, &json!({"models": models}))
}

/// Entry of a model in memory. A permanent one expires in a century, since clients expect a time.
fn running(model: &ServedModel, engine: &Engine) -> Option<Value> {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    let (info, activity) = (engine.model_info(), engine.activity());
    let expires_in = activity.unloads_at.map(|end| end.saturating_duration_since(Instant::now()));
    let expires_in = expires_in.or(activity.keep_alive).unwrap_or(CENTURY).min(CENTURY);
    (activity.total_pages > 0).then(|| {
        json!({
            "name": model.name(),
            "model": model.name(),
            "size": info.weight_bytes,
            "digest": format!("{:016x}", info.checksum),
            "details": details(model, Some(info)),
            "expires_at": ollama_time(seconds_since_1970() + expires_in.as_secs()),
            "size_vram": 0,
            "context_length": engine.context_tokens(),
        })
    })
}

/// Entry of a model; fields that come from its files are zero or empty until it is loaded, since clients
/// expect their types.
fn listed(model: &ServedModel, name: &str) -> Value {
    let info = model.loaded().map(|loaded| loaded.engine.model_info());
    json!({
        "name": name,
        "model": name,
        "modified_at": ollama_time(model.created()),
        "size": model.bytes().unwrap_or(0),
        "digest": format!("{:016x}", info.map_or(0, |info| info.checksum)),
        "details": details(model, info),
        "capabilities": capabilities(model),
    })
}

/// Capabilities in the terms of Ollama's API, which lacks audio.
fn capabilities(model: &ServedModel) -> Vec<&'static str> {
    let sees = model.reads(MediaKind::Image);
    let thinks = model.loaded().is_some_and(|loaded| loaded.chat.thinks());
    let infills = model.loaded().is_some_and(|loaded| loaded.chat.infills());
    let further = [infills.then_some("insert"), sees.then_some("vision"), thinks.then_some("thinking")];
    ["completion", "tools"].into_iter().chain(further.into_iter().flatten()).collect()
}

/// Details of a model; `quantization_level` is the format of most of its weights in memory.
fn details(model: &ServedModel, info: Option<&ModelInfo>) -> Value {
    let weights = info.and_then(|info| info.formats.first()).map(|format| format.to_string().to_uppercase());
    let family = info.map_or("", |info| info.architecture.as_str());
    let size = info.map(|info| format!("{:.1}M", info.parameters as f64 / 1e6));
    json!({
        "parent_model": "",
        "format": model.file_format(),
        "family": family,
        "families": [family],
        "parameter_size": size.unwrap_or_default(),
        "quantization_level": weights.unwrap_or_default(),
    })
}

/// Shows the model that a body names as `model`, or `name`.
pub(super) async fn show(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let body: Show = Fields::open(body, &SHOW)?.into_group()?;
    let name = body.name().ok_or_else(|| ApiError::missing("model"))?;
    let model = app.models.find(Some(&name))?;
    let object = app.prepare(move || Ok(shown(&model, model.engines()?))).await?;
    Ok(response::json(StatusCode::OK, &object))
}

fn shown(model: &ServedModel, engines: &Engines) -> Value {
    let info = engines.engine.model_info();
    let basename = model.name().rsplit(['/', '\\']).next().unwrap_or_default();
    json!({
        "modified_at": ollama_time(model.created()),
        "license": "",
        "modelfile": "",
        "parameters": "",
        "template": "",
        "details": details(model, Some(info)),
        "model_info": {
            "general.architecture": info.architecture,
            "general.basename": basename,
            "general.parameter_count": info.parameters,
            format!("{}.context_length", info.architecture): engines.engine.context_tokens(),
            format!("{}.embedding_length", info.architecture): info.hidden_size,
        },
        "capabilities": capabilities(model),
    })
}
