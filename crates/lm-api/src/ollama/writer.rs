//! Responses of `/api/chat` and `/api/generate`.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use lm_conversation::{ConversationEvent, Reply, ScoredToken, ToolCall};
use serde_json::{Map, Value, json};

use super::ollama_error;
use crate::chat_completions::scores;
use crate::error::ApiError;
use crate::request::ChatRequest;
use crate::response_writer::{Choice, Frame, Framing, ResponseWriter};

/// Writer of the objects of `/api/chat` or `/api/generate`. A streamed response has one for each piece of
/// text or reasoning and for each call, and a last one with counts and durations.
#[derive(Debug)]
pub struct OllamaWriter {
    model: String,
    endpoint: Endpoint,
    began: Instant,
    /// Log probabilities for the next object of a stream.
    scored: Vec<ScoredToken>,
}

#[derive(Debug, Clone, Copy)]
enum Endpoint {
    Chat,
    Generate,
}

/// Parts of an object.
#[derive(Default)]
struct Parts<'a> {
    text: &'a str,
    thinking: Option<&'a str>,
    calls: &'a [ToolCall],
}

impl OllamaWriter {
    /// Creates a writer for `/api/chat`. `total_duration` begins now.
    pub fn chat(_: &ChatRequest, model: &str) -> Self {
        Self { model: model.to_owned(), endpoint: Endpoint::Chat, began: Instant::now(), scored: Vec::new() }
    }

    /// Creates a writer for `/api/generate`.
    pub fn generate(request: &ChatRequest, model: &str) -> Self {
        Self { endpoint: Endpoint::Generate, ..Self::chat(request, model) }
    }

    fn object_of(&self, parts: &Parts<'_>) -> Map<String, Value> {
        let Parts { text, thinking, calls } = parts;
        let mut fields = Map::new();
        if let Some(thinking) = thinking {
            fields.insert("thinking".to_owned(), (*thinking).into());
        }
        if !calls.is_empty() {
            fields.insert("tool_calls".to_owned(), calls.iter().map(call).collect());
        }
        match self.endpoint {
            Endpoint::Generate => fields.insert("response".to_owned(), (*text).into()),
            Endpoint::Chat => {
                fields.insert("role".to_owned(), "assistant".into());
                fields.insert("content".to_owned(), (*text).into());
                let message = Value::Object(std::mem::take(&mut fields));
                fields.insert("message".to_owned(), message)
            }
        };
        let head = [
            ("model", self.model.as_str().into()),
            ("created_at", Timestamp::now().to_string().into()),
            ("done", false.into()),
        ];
        fields.extend(head.map(|(key, value)| (key.to_owned(), value)));
        fields
    }

    fn frame(&mut self, parts: &Parts<'_>) -> Frame {
        let object = Value::Object(self.object_of(parts));
        Frame::new(self.scored(object))
    }

    /// The object with the log probabilities since the last one.
    fn scored(&mut self, mut object: Value) -> Value {
        let scored = std::mem::take(&mut self.scored);
        if !scored.is_empty() {
            object["logprobs"] = scores(&scored);
        }
        object
    }

    /// Object with the end of a reply.
    fn last(&self, parts: &Parts<'_>, reply: &Reply) -> Value {
        let (usage, timing) = (&reply.finish.usage, &reply.finish.timing);
        let end = [
            ("done", true.into()),
            ("done_reason", if reply.finish.is_cut_off() { "length" } else { "stop" }.into()),
            ("total_duration", nanoseconds(self.began.elapsed())),
            ("load_duration", 0.into()),
            ("prompt_eval_count", usage.prompt_tokens.into()),
            ("prompt_eval_duration", nanoseconds(timing.prefill)),
            ("eval_count", usage.output_tokens.into()),
            ("eval_duration", nanoseconds(timing.decode)),
        ];
        let mut object = self.object_of(parts);
        object.extend(end.map(|(key, value)| (key.to_owned(), value)));
        Value::Object(object)
    }
}

impl ResponseWriter for OllamaWriter {
    const FRAMING: Framing = Framing::Lines;

    fn object(&mut self, choices: &[Choice]) -> Value {
        let reply = &choices[0].reply;
        let (text, thinking) = (reply.text(), reply.message.reasoning_content.as_deref());
        let object = self.last(&Parts { text: &text, thinking, calls: reply.tool_calls() }, reply);
        self.scored = choices[0].logprobs.clone().unwrap_or_default();
        self.scored(object)
    }

    fn frames(&mut self, _: usize, event: &ConversationEvent) -> Vec<Frame> {
        let none = Parts::default();
        match event {
            ConversationEvent::Text(text) => vec![self.frame(&Parts { text, ..none })],
            ConversationEvent::Reasoning(text) => vec![self.frame(&Parts { thinking: Some(text), ..none })],
            ConversationEvent::ToolCall(call) => {
                vec![self.frame(&Parts { calls: std::slice::from_ref(call), ..none })]
            }
            ConversationEvent::Logprobs(scored) => {
                self.scored.push(scored.clone());
                Vec::new()
            }
            ConversationEvent::Finished(reply) => {
                let object = self.last(&none, reply);
                vec![Frame::new(self.scored(object))]
            }
            _ => Vec::new(),
        }
    }

    fn error(&mut self, error: &ApiError) -> Frame {
        Frame::new(ollama_error(error))
    }
}

/// A call with its arguments as an object, as in this API.
fn call(call: &ToolCall) -> Value {
    json!({"id": call.id, "function": {"name": call.name, "arguments": call.arguments}})
}

/// Duration in the unit of this API.
pub(super) fn nanoseconds(duration: Duration) -> Value {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).into()
}

/// Time in the form of this API, RFC 3339, from seconds since 1970.
pub fn ollama_time(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.unwrap_or_default().to_string()
}
