//! Paths of llama.cpp's server: `/props`, `/slots` and `/infill`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lm_api::{CompletionRequest, InfillWriter, SamplerParams};
use lm_session::MediaKind;
use serde_json::{Value, json};

use super::body::JsonBody;
use super::chat;
use crate::models::{Engines, ServedModel};
use crate::response::{self, ErrorResponse};
use crate::state::SharedApp;

/// Shows the first model: its context, template, media, and the values of absent fields. It is loaded.
pub(crate) async fn props(State(app): State<SharedApp>) -> Result<Response, ErrorResponse> {
    let model = app.models.find(None)?;
    let slots = app.config.parallel;
    let object = app.prepare(move || Ok(properties(&model, model.engines()?, slots))).await?;
    Ok(response::json(StatusCode::OK, &object))
}

fn properties(model: &ServedModel, engines: &Engines, slots: usize) -> Value {
    let (engine, config) = (&engines.engine, engines.chat.defaults());
    let mut params = sampler(&config.session.sampler);
    params["n_predict"] = config.session.max_output_tokens.map_or(json!(-1), Value::from);
    params["stop"] = json!(config.session.stop);
    json!({
        "default_generation_settings": {
            "id": 0,
            "n_ctx": engine.context_tokens(),
            "is_processing": engine.activity().running_requests > 0,
            "params": params,
        },
        "total_slots": slots,
        "model_alias": model.name(),
        // The files' place on this machine is no client's business.
        "model_path": model.name().rsplit(['/', '\\']).next(),
        "chat_template": engines.chat.template(),
        "modalities": {"vision": model.reads(MediaKind::Image), "audio": model.reads(MediaKind::Audio)},
        "infill": engines.chat.infills(),
        "build_info": concat!("lm ", env!("CARGO_PKG_VERSION")),
        "is_sleeping": engine.activity().total_pages == 0,
    })
}

/// Sampling parameters in llama.cpp's spelling.
fn sampler(sampler: &SamplerParams) -> Value {
    let last_n = |window: Option<usize>| window.map_or(json!(-1), Value::from);
    json!({
        "seed": sampler.seed,
        "temperature": sampler.temperature,
        "top_k": sampler.top_k,
        "top_p": sampler.top_p,
        "min_p": sampler.min_p,
        "typical_p": sampler.typical_p,
        "top_n_sigma": sampler.top_n_sigma,
        "xtc_probability": sampler.xtc_probability,
        "xtc_threshold": sampler.xtc_threshold,
        "repeat_penalty": sampler.repetition_penalty,
        "repeat_last_n": last_n(sampler.penalty_window),
        "presence_penalty": sampler.presence_penalty,
        "frequency_penalty": sampler.frequency_penalty,
        "dry_multiplier": sampler.dry_multiplier,
        "dry_base": sampler.dry_base,
        "dry_allowed_length": sampler.dry_allowed_length,
        "dry_penalty_last_n": last_n(sampler.dry_penalty_last_n),
    })
}

/// Lists the places of the first model's batch; one that runs a request is processing. Requests have no place
/// of their own.
pub(crate) async fn slots(State(app): State<SharedApp>) -> Result<Response, ErrorResponse> {
    let model = app.models.find(None)?;
    let engines = model.loaded();
    let running = engines.map_or(0, |engines| engines.engine.activity().running_requests);
    let context = engines.map_or(0, |engines| engines.engine.context_tokens());
    let slot = |id: usize| json!({"id": id, "n_ctx": context, "is_processing": id < running});
    let slots: Vec<Value> = (0..app.config.parallel).map(slot).collect();
    Ok(response::json(StatusCode::OK, &json!(slots)))
}

/// Writes the text between two others, as one object or as a stream of pieces.
pub(crate) async fn infill(
    State(app): State<SharedApp>,
    JsonBody(body): JsonBody,
) -> Result<Response, ErrorResponse> {
    let mut request = CompletionRequest::infill_from_json(body, &app.config.limits.request)?;
    let options = request.options.clone();
    let start = move |engines: &Engines, options| {
        request.options = options;
        engines.chat.continue_text(request, InfillWriter::for_request)
    };
    chat::run(&app, options, start).await
}
