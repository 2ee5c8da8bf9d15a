//! `options` of a request.

use serde_json::{Map, Value};

use super::fields::{NAMES, OPTIONS, Options};
use crate::error::{ApiError, Result};
use crate::fields::{Fields, StopSequences};
use crate::limits::Limits;
use crate::request::ChatRequest;
use crate::sampling::SamplingFields;

/// Sets the options of a request. Those of a model's memory and threads (`num_ctx`, `num_gpu`, …) are
/// ignored: the server has its own.
pub(super) fn set(request: &mut ChatRequest, options: Map<String, Value>, limits: &Limits) -> Result<()> {
    let at = |error: ApiError| {
        let param = error.param.clone().unwrap_or_default();
        error.with_param(format!("options.{}", param.replace("repetition_penalty", "repeat_penalty")))
    };
    let fields = Fields::open(Value::Object(options), &OPTIONS)?;
    let mut sampling: SamplingFields = fields.read().map_err(at)?;
    let options: Options = fields.into_group().map_err(at)?;
    sampling.repetition_penalty = options.repeat_penalty.or(sampling.repetition_penalty);
    request.sampling = sampling.checked(limits).map_err(at)?;
    request.stop = StopSequences::read(options.stop, "stop", limits).map_err(at)?;
    // A negative number means no limit.
    let limit = options.num_predict.and_then(|count| usize::try_from(count).ok());
    if limit == Some(0) {
        let message = "`num_predict` is 0, expected at least 1, or a negative number for no limit";
        return Err(ApiError::invalid_param(NAMES.max_output_tokens, message));
    }
    request.max_output_tokens = limit.map(|limit| (NAMES.max_output_tokens, limit));
    Ok(())
}
