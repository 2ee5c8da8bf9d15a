//! Reasoning effort of a request.

use lm_conversation::{ThinkingConfig, ThinkingMode};
use serde_json::Value;

use crate::error::{ApiError, Result};
use crate::fields::shown;

/// Levels of effort.
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// Thinking of the turn, and the effort as a variable of the template: some templates read it. Effort `none`
/// turns thinking off; every other one leaves it to the model. `field` is the path of the effort.
pub(crate) fn thinking(
    effort: Option<String>,
    field: &str,
    max_tokens: Option<usize>,
) -> Result<(ThinkingConfig, Option<(String, Value)>)> {
    if let Some(effort) = effort.as_deref().filter(|effort| !EFFORTS.contains(effort)) {
        let message =
            format!("`{field}` is {}, expected one of {}", shown(&effort.into()), EFFORTS.join(", "));
        return Err(ApiError::invalid_param(field, message));
    }
    let mode = if effort.as_deref() == Some("none") { ThinkingMode::Off } else { ThinkingMode::Default };
    let thinking = ThinkingConfig { mode, max_tokens };
    Ok((thinking, effort.map(|effort| ("reasoning_effort".to_owned(), effort.into()))))
}
