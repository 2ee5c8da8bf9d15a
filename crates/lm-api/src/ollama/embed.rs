//! Embeddings of Ollama's API.

use std::time::Instant;

use serde_json::{Value, json};

use super::fields::{EMBED, Embed};
use super::keep_alive::KeepAlive;
use super::writer::nanoseconds;
use crate::embeddings::{EmbeddingRequest, InputFields};
use crate::error::Result;
use crate::fields::Fields;
use crate::limits::Limits;

/// Reads a body of `/api/embed`: `model`, `input`, `dimensions` and `keep_alive`. `truncate` has no effect: a
/// text that is too long is an error.
///
/// # Errors
/// When a field is invalid.
pub fn ollama_embed(body: Value, limits: &Limits) -> Result<EmbeddingRequest> {
    let fields = Fields::open(body, &EMBED)?;
    let keep_alive = KeepAlive::read(fields.read::<Embed>()?.keep_alive)?;
    Ok(EmbeddingRequest { keep_alive, ..fields.into_group::<InputFields>()?.request(limits)? })
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
