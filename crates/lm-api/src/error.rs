//! Error object of the API.

use std::fmt::Display;
use std::time::Duration;

use serde_json::{Value, json};

/// Result with this crate's [`ApiError`].
pub type Result<T, E = ApiError> = std::result::Result<T, E>;

/// Error of a request: an HTTP status, and the fields of the API's error object.
///
/// ```
/// use lm_api::ChatRequest;
/// use serde_json::json;
///
/// let body = json!({"messages": [{"role": "user", "content": "Hi."}], "n": 0});
/// let error = ChatRequest::from_json(body).expect_err("`n` is at least 1");
/// assert_eq!((error.status, error.param.as_deref()), (400, Some("n")));
/// assert_eq!(error.to_json()["error"]["type"], "invalid_request_error");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ApiError {
    /// HTTP status. Clients repeat requests that fail with 408, 409, 429 or 500 and above; deterministic
    /// failures are below.
    pub status: u16,
    /// Kind of the error, `type` of the object.
    pub kind: &'static str,
    /// Description of the error.
    pub message: String,
    /// Path of the field at fault, such as `tools[3].function.parameters`.
    pub param: Option<String>,
    /// Machine-readable code.
    pub code: Option<&'static str>,
    /// Number of tokens of a prompt that is too long, and of the context.
    pub prompt: Option<Box<PromptLength>>,
    /// Time after which the same request may succeed; for the header `Retry-After`.
    pub retry_after: Option<Duration>,
}

/// Length of a prompt that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptLength {
    /// Tokens of the prompt.
    pub tokens: usize,
    /// Tokens that the context holds.
    pub context: usize,
}

impl ApiError {
    /// Creates the error of a request that is not readable at all.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        let (kind, message) = ("invalid_request_error", message.into());
        Self { status: 400, kind, message, param: None, code: None, prompt: None, retry_after: None }
    }

    /// Creates the error of an invalid or unsupported field.
    pub fn invalid_param(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::invalid_request(message).with_param(param)
    }

    /// Creates the error of a field that is missing.
    pub fn missing(param: &str) -> Self {
        Self::invalid_param(param, format!("`{param}` is missing"))
    }

    /// Creates the error of a field that has another value than expected.
    pub(crate) fn unexpected(param: impl AsRef<str>, got: impl Display, expected: impl Display) -> Self {
        let param = param.as_ref();
        Self::invalid_param(param, format!("`{param}` is {got}, expected {expected}"))
    }

    /// Creates the error of a failure that is not the request's fault.
    pub fn server(message: impl Into<String>) -> Self {
        let (kind, message) = ("server_error", message.into());
        Self { status: 500, kind, message, param: None, code: None, prompt: None, retry_after: None }
    }

    /// Creates the error of a request that is refused for another reason than its fields: `status` is below
    /// 500 then.
    pub fn refused(status: u16, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, ..Self::invalid_request(message) }
    }

    /// Creates the error of a server that has no place for the request.
    pub fn overloaded(message: impl Into<String>, retry_after: Duration) -> Self {
        Self { retry_after: Some(retry_after), ..Self::refused(429, "rate_limit_error", message) }
    }

    /// Sets the HTTP status.
    pub fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Sets the path of the field at fault.
    pub fn with_param(self, param: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..self }
    }

    /// Replaces the name of a field in the path and the message.
    pub(crate) fn renamed(self, from: &str, to: &str) -> Self {
        let rename = |text: String| text.replace(from, to);
        Self { param: self.param.map(rename), message: rename(self.message), ..self }
    }

    /// Sets the machine-readable code.
    pub fn with_code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    /// Creates the error of a prompt that is longer than the context. Clients know it by the words of its
    /// message: Claude Code and new versions of LiteLLM by Anthropic's, the others by OpenAI's.
    pub(crate) fn prompt_too_long(param: &str, length: PromptLength) -> Self {
        let PromptLength { tokens, context } = length;
        let message = format!(
            "prompt is too long: {tokens} tokens > {context} maximum; this model's maximum context length is \
             {context} tokens"
        );
        Self {
            prompt: Some(Box::new(length)),
            ..Self::invalid_param(param, message).with_code("context_length_exceeded")
        }
    }

    /// Value of the header `Retry-After`, in whole seconds, at least 1.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        let seconds = |after: Duration| (after.as_secs() + u64::from(after.subsec_nanos() > 0)).max(1);
        self.retry_after.map(seconds)
    }

    /// Error object of the API: `{"error": {"message", "type", "param", "code"}}`.
    pub fn to_json(&self) -> Value {
        let Self { kind, message, param, code, .. } = self;
        let mut object = json!({"message": message, "type": kind, "param": param, "code": code});
        self.add_length(&mut object);
        json!({"error": object})
    }

    /// Adds the length of a prompt that is too long, by llama.cpp's names.
    pub(crate) fn add_length(&self, object: &mut Value) {
        if let Some(PromptLength { tokens, context }) = self.prompt.as_deref() {
            object["n_prompt_tokens"] = (*tokens).into();
            object["n_ctx"] = (*context).into();
        }
    }
}
