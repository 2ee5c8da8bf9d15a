//! Error objects of Anthropic's API.

use serde_json::{Value, json};

use crate::error::ApiError;

/// Error object of Anthropic's API: `{"type": "error", "error": {"type", "message"}}`.
///
/// The error of a conversation that the server is to hold (`thread`) has the details by which the tool
/// runner of Anthropic's clients goes on without it.
///
/// ```
/// use lm_api::{ApiError, anthropic_error};
///
/// let error = anthropic_error(&ApiError::invalid_param("max_tokens", "`max_tokens` is missing"));
/// assert_eq!(error["error"]["type"], "invalid_request_error");
/// ```
pub fn anthropic_error(error: &ApiError) -> Value {
    let mut object = json!({"type": kind(error.status), "message": error.message});
    error.add_length(&mut object);
    if error.param.as_deref() == Some("thread") {
        object["details"] = json!({"error_code": "thread_unsupported_request", "unsupported": ["thread"]});
    }
    json!({"type": "error", "error": object})
}

/// Type of an error of this status.
fn kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        499 | 500 => "api_error",
        503 => "overloaded_error",
        504 => "timeout_error",
        _ => "invalid_request_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_follows_from_the_status() {
        let kind = |error: ApiError| anthropic_error(&error)["error"]["type"].clone();
        assert_eq!(kind(ApiError::server("x")), "api_error");
        assert_eq!(kind(lm_conversation::Error::Cancelled.into()), "api_error");
        assert_eq!(kind(lm_conversation::Error::DeadlineExceeded.into()), "timeout_error");
        assert_eq!(kind(lm_conversation::Error::NoMessage.into()), "invalid_request_error");
        for (status, expected) in
            [(401, "authentication_error"), (413, "request_too_large"), (405, "invalid_request_error")]
        {
            assert_eq!(kind(ApiError::refused(status, "", "x")), expected);
        }
    }
}
