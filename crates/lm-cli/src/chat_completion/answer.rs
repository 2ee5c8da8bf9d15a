//! Response body.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use lm_conversation::Reply;
use lm_session::FinishReason;
use lm_template::{ToolCall, Value};
use serde_json::{Map, json};

/// Error of a request that is not answered.
#[derive(Debug, PartialEq)]
pub struct Refusal {
    pub message: String,
    /// The invalid field, as a path such as `tools[3].function.parameters`.
    pub param: Option<String>,
    /// Machine-readable error code.
    pub code: Option<&'static str>,
    /// True if the request is invalid, false for an error of the server.
    pub by_request: bool,
}

impl Refusal {
    /// Creates the error of an invalid or unsupported field `param`.
    pub fn field(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { message: message.into(), param: Some(param.into()), code: None, by_request: true }
    }

    /// Creates the error of a body that is no request at all.
    pub fn of_body(message: impl Into<String>) -> Self {
        Self { message: message.into(), param: None, code: None, by_request: true }
    }

    pub fn to_json(&self) -> Value {
        let kind = if self.by_request { "invalid_request_error" } else { "server_error" };
        json!({"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}})
    }
}

impl From<lm_conversation::Error> for Refusal {
    fn from(error: lm_conversation::Error) -> Self {
        use lm_session::Error as Session;
        let refusal = |param: Option<&str>, code, by_request| Self {
            message: error.to_string(),
            param: param.map(str::to_owned),
            code,
            by_request,
        };
        match &error {
            lm_conversation::Error::Session(Session::PromptTooLong { .. }) => {
                refusal(Some("messages"), Some("context_length_exceeded"), true)
            }
            lm_conversation::Error::Session(Session::InvalidSampler { field, .. }) => {
                refusal(Some(field), None, true)
            }
            lm_conversation::Error::Session(Session::EmptyStopString { .. }) => {
                refusal(Some("stop"), None, true)
            }
            lm_conversation::Error::Template(_) | lm_conversation::Error::NoMessage => {
                refusal(Some("messages"), None, true)
            }
            lm_conversation::Error::UnusableSchema { tool, .. } => {
                let at = if tool.is_some() { "tools" } else { "response_format" };
                refusal(Some(at), Some("invalid_schema"), true)
            }
            lm_conversation::Error::NoThinking { .. } => refusal(Some("max_reasoning_tokens"), None, true),
            lm_conversation::Error::Processor(error) => of_processor(error, refusal),
            lm_conversation::Error::Session(Session::Grammar { .. }) => {
                refusal(Some("response_format"), Some("invalid_schema"), true)
            }
            lm_conversation::Error::Session(Session::BudgetTooSmall { .. }) => {
                refusal(Some("max_tokens"), None, true)
            }
            _ => refusal(None, None, false),
        }
    }
}

fn of_processor(
    error: &lm_processors::Error,
    refusal: impl Fn(Option<&str>, Option<&'static str>, bool) -> Refusal,
) -> Refusal {
    use lm_processors::Error as Processor;
    match error {
        Processor::UnsupportedPart { .. } => refusal(Some("messages"), None, true),
        Processor::Schema(error) => {
            let at = if error.tool.is_some() { "tools" } else { "response_format" };
            refusal(Some(at), Some("invalid_schema"), true)
        }
        Processor::UnknownTool { .. } | Processor::NoTools | Processor::NoCallSyntax { .. } => {
            refusal(Some("tool_choice"), None, true)
        }
        _ => refusal(None, None, false),
    }
}

/// Creates the completion object of a reply.
pub fn completion(model: &str, reply: &Reply) -> Value {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let usage = &reply.finish.usage;
    json!({
        "id": format!("chatcmpl-{created:x}-{:x}", NEXT.fetch_add(1, Ordering::Relaxed)),
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{
            "index": 0,
            "message": message(reply),
            "logprobs": null,
            "finish_reason": finish_reason(reply),
        }],
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.prompt_tokens + usage.output_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        },
    })
}

/// The assistant's message: null content if there are calls without text, and no `tool_calls` without calls.
fn message(reply: &Reply) -> Value {
    let text = reply.text();
    let content = if text.is_empty() && !reply.tool_calls().is_empty() { Value::Null } else { text.into() };
    let mut message = Map::new();
    message.insert("role".to_owned(), "assistant".into());
    message.insert("content".to_owned(), content);
    if let Some(reasoning) = &reply.message.reasoning_content {
        message.insert("reasoning_content".to_owned(), reasoning.as_str().into());
    }
    if !reply.tool_calls().is_empty() {
        message.insert("tool_calls".to_owned(), reply.tool_calls().iter().map(tool_call).collect());
    }
    Value::Object(message)
}

/// A call with its arguments as JSON text, as in this API.
fn tool_call(call: &ToolCall) -> Value {
    let arguments = Value::Object(call.arguments.clone()).to_string();
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

fn finish_reason(reply: &Reply) -> &'static str {
    match reply.finish.reason {
        FinishReason::MaxOutputTokens | FinishReason::ContextFull => "length",
        _ if !reply.tool_calls().is_empty() => "tool_calls",
        _ => "stop",
    }
}
