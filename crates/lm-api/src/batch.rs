//! Lines of batch files.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::embeddings::EmbeddingRequest;
use crate::error::{ApiError, Result};
use crate::fields::{json_type, shown};
use crate::ids::random_id;
use crate::request::ChatRequest;

/// Endpoints of a line.
const ENDPOINTS: [(&str, Endpoint); 2] =
    [("/v1/chat/completions", Endpoint::Chat), ("/v1/embeddings", Endpoint::Embeddings)];

#[derive(Debug, Clone, Copy)]
enum Endpoint {
    Chat,
    Embeddings,
}

/// Reader of the lines of a batch file: OpenAI's batch format, or request bodies alone.
///
/// ```
/// use lm_api::BatchReader;
/// use serde_json::json;
///
/// let body = json!({"messages": [{"role": "user", "content": "Hi."}]});
/// let mut reader = BatchReader::default();
/// let line = json!({"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": body});
/// let line = reader.read(Ok(line));
/// assert!(line.request.is_ok());
/// let answer = line.answer.json(&Ok(json!({"object": "chat.completion"})));
/// assert_eq!((&answer["custom_id"], &answer["response"]["status_code"]), (&json!("a"), &json!(200)));
/// ```
#[derive(Debug, Default)]
pub struct BatchReader {
    /// True if the last readable line was in batch format; `None` before the first one.
    batch_format: Option<bool>,
    custom_ids: HashSet<String>,
}

/// A line of a batch file.
#[derive(Debug)]
pub struct BatchLine {
    /// The request, or the reason why there is none.
    pub request: Result<BatchRequest>,
    /// Form of its answer.
    pub answer: BatchAnswer,
}

/// Request of a line.
#[derive(Debug, Clone)]
pub enum BatchRequest {
    /// Chat completion.
    Chat(Box<ChatRequest>),
    /// Embeddings.
    Embeddings(EmbeddingRequest),
}

/// Form of the answer to a line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchAnswer {
    /// The response body, or the error object.
    Plain,
    /// OpenAI's batch format:
    /// `{"id", "custom_id", "response": {"status_code", "request_id", "body"}, "error"}`.
    Batch {
        /// Id of the line; `None` if it has none.
        custom_id: Option<String>,
        /// True if the line has a request: its errors are then responses with their status, as over HTTP.
        has_request: bool,
    },
    /// An unreadable line before the first readable one: the error object with the fields of a failed line of
    /// the batch format, so that readers of either form find them.
    Unknown,
}

impl BatchReader {
    /// Reads a line: its JSON value, or the description of an unreadable one, which is answered in the format
    /// of the line before it. A `custom_id` that an earlier line has is an error of the later one.
    pub fn read(&mut self, line: Result<Value, String>) -> BatchLine {
        match line {
            Ok(line) => {
                let is_batch = is_batch_format(&line);
                self.batch_format = Some(is_batch);
                if is_batch { self.batch_line(line) } else { plain(line) }
            }
            Err(message) => {
                let answer = match self.batch_format {
                    None => BatchAnswer::Unknown,
                    Some(false) => BatchAnswer::Plain,
                    Some(true) => BatchAnswer::Batch { custom_id: None, has_request: false },
                };
                BatchLine { request: Err(ApiError::invalid_request(message)), answer }
            }
        }
    }

    fn batch_line(&mut self, mut line: Value) -> BatchLine {
        let custom_id = line.get("custom_id").and_then(Value::as_str).map(str::to_owned);
        let body = match &custom_id {
            Some(id) if !self.custom_ids.insert(id.clone()) => Err(duplicate(id)),
            _ => envelope(&mut line),
        };
        let (request, has_request) = match body {
            Ok((endpoint, body)) => (request(endpoint, body), true),
            Err(error) => (Err(error), false),
        };
        BatchLine { request, answer: BatchAnswer::Batch { custom_id, has_request } }
    }
}

fn duplicate(id: &str) -> ApiError {
    let message = format!("`custom_id` is {}, which an earlier line has", shown(&id.into()));
    ApiError::invalid_param("custom_id", message).with_code("duplicate_custom_id")
}

fn is_batch_format(line: &Value) -> bool {
    let has = |key: &&str| line.get(key).is_some();
    ["custom_id", "body", "url"].iter().any(has) && !["messages", "input"].iter().any(has)
}

fn plain(body: Value) -> BatchLine {
    BatchLine { request: request(endpoint_of(&body), body), answer: BatchAnswer::Plain }
}

/// Endpoint of a body without a URL.
fn endpoint_of(body: &Value) -> Endpoint {
    let has = |key: &str| body.get(key).is_some();
    if has("input") && !has("messages") { Endpoint::Embeddings } else { Endpoint::Chat }
}

/// Checks the fields around the body, and takes the body.
fn envelope(line: &mut Value) -> Result<(Endpoint, Value)> {
    let field = |name: &str| line.get(name).filter(|value| !value.is_null());
    if !field("custom_id").is_some_and(Value::is_string) {
        let got = field("custom_id").map_or("missing", json_type);
        return Err(ApiError::unexpected("custom_id", got, "a string"));
    }
    let unexpected = |name: &str, value: &Value, expected: &[&str]| {
        ApiError::unexpected(name, shown(value), format!("\"{}\"", expected.join("\" or \"")))
    };
    if let Some(method) = field("method").filter(|method| *method != "POST") {
        return Err(unexpected("method", method, &["POST"]));
    }
    let endpoint = field("url").map(|url| {
        let known = ENDPOINTS.iter().find(|(known, _)| url == known);
        known
            .map(|(_, endpoint)| *endpoint)
            .ok_or_else(|| unexpected("url", url, &ENDPOINTS.map(|(known, _)| known)))
    });
    let endpoint = endpoint.transpose()?;
    let body = line.get_mut("body").map(Value::take);
    let body = body.ok_or_else(|| ApiError::missing("body"))?;
    Ok((endpoint.unwrap_or_else(|| endpoint_of(&body)), body))
}

fn request(endpoint: Endpoint, body: Value) -> Result<BatchRequest> {
    if let Endpoint::Embeddings = endpoint {
        return EmbeddingRequest::from_json(body).map(BatchRequest::Embeddings);
    }
    let request = ChatRequest::from_json(body)?;
    match request.stream {
        None => Ok(BatchRequest::Chat(Box::new(request))),
        Some(_) => {
            Err(ApiError::invalid_param("stream", "`stream` is not supported in a batch; only false is"))
        }
    }
}

impl BatchAnswer {
    /// Writes the answer of a line.
    pub fn json(&self, result: &Result<Value>) -> Value {
        let body = || result.clone().unwrap_or_else(|error| error.to_json());
        match self {
            Self::Plain => body(),
            Self::Unknown => {
                let mut answer = body();
                answer["id"] = random_id("batch_req_").into();
                (answer["custom_id"], answer["response"]) = (Value::Null, Value::Null);
                answer
            }
            Self::Batch { custom_id, has_request } => {
                let status = result.as_ref().map_or_else(|error| error.status, |_| 200);
                let response =
                    || json!({"status_code": status, "request_id": random_id("req_"), "body": body()});
                let error = result.as_ref().err().filter(|_| !has_request);
                json!({
                    "id": random_id("batch_req_"),
                    "custom_id": custom_id,
                    "response": has_request.then(response),
                    "error": error.map(|error| {
                        let code = error.code.unwrap_or("invalid_line");
                        json!({"code": code, "message": error.message, "param": error.param})
                    }),
                })
            }
        }
    }
}
