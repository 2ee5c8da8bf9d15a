//! `options` of a request.

use serde_json::{Map, Value};

use super::fields::{NAMES, OPTIONS};
use crate::error::{ApiError, Result};
use crate::fields::{Fields, stop_sequences};
use crate::limits::Limits;
use crate::sampling::SamplingFields;

/// Options that a turn has.
pub(super) struct Options {
    pub sampling: SamplingFields,
    pub stop: Vec<String>,
    pub max_output_tokens: Option<(&'static str, usize)>,
}

/// Reads `options`. Those of a model's memory and threads (`num_ctx`, `num_gpu`, …) are ignored: the server
/// has its own.
pub(super) fn read(options: Map<String, Value>, limits: &Limits) -> Result<Options> {
    let fields = &mut Fields::open(Value::Object(options), &OPTIONS)?;
    fields.rename("repeat_penalty", "repetition_penalty");
    let at = |error: ApiError| {
        let param = error.param.clone().unwrap_or_default();
        error.with_param(format!("options.{}", param.replace("repetition_penalty", "repeat_penalty")))
    };
    // A negative number means no limit.
    let limit = fields.get::<i64>("num_predict").map_err(at)?.and_then(|count| usize::try_from(count).ok());
    if limit == Some(0) {
        let message = "`num_predict` is 0, expected at least 1, or a negative number for no limit";
        return Err(ApiError::invalid_param(NAMES.max_output_tokens, message));
    }
    Ok(Options {
        sampling: SamplingFields::read(fields, limits).map_err(at)?,
        stop: stop_sequences(fields, "stop", limits).map_err(at)?,
        max_output_tokens: limit.map(|limit| (NAMES.max_output_tokens, limit)),
    })
}
