//! Embeddings of Ollama's API.

use std::time::Instant;

use serde_json::{Map, Value, json};

use super::fields::EMBED;
use super::keep_alive::KeepAlive;
use super::writer::nanoseconds;
use crate::embeddings::EmbeddingRequest;
use crate::error::Result;
use crate::fields::Fields;
use crate::limits::Limits;

/// Reads a body of `/api/embed`: `model`, `input`, `dimensions` and `keep_alive`. `truncate` has no effect: a
/// text that is too long is an error.
///
/// # Errors
/// When a field is invalid.
pub fn ollama_embed(body: Value, limits: &Limits) -> Result<EmbeddingRequest> {
    let mut fields = Fields::open(body, &EMBED)?;
    let kept = ["model", "input", "dimensions"];
    let body: Map<_, _> =
        kept.iter().filter_map(|name| Some(((*name).to_owned(), fields.take(name)?))).collect();
    let keep_alive = KeepAlive::read(fields.take("keep_alive"))?;
    Ok(EmbeddingRequest { keep_alive, ..EmbeddingRequest::from_json_within(Value::Object(body), limits)? })
}

/// Converts a list of embeddings of OpenAI's API, started at this time, to a response of `/api/embed`.
pub fn ollama_embeddings(list: &Value, began: Instant) -> Value {
    let data = list["data"].as_array().into_iter().flatten();
    json!({
        "model": list["model"],
        "embeddings": data.map(|item| item["embedding"].clone()).collect::<Vec<_>>(),
        "total_duration": nanoseconds(began.elapsed()),
        "load_duration": 0,
        "prompt_eval_count": list["usage"]["prompt_tokens"],
    })
}
