//! Responses, whole and streamed.

use lm_conversation::{ConversationEvent, FinishReason, Reply, ScoredToken};
use serde_json::{Map, Value, json};

use super::items::{self, Kind};
use super::record::Record;
use super::request::ResponsesRequest;
use super::store::ResponseStore;
use crate::call_deltas::{CallDelta, CallDeltas};
use crate::chat_completions::scores;
use crate::client_tools::ClientTools;
use crate::error::ApiError;
use crate::ids::seconds_since_1970;
use crate::response_writer::{Choice, Frame, Framing, ResponseWriter};

/// Writer of one response: the `response` object, or the events of its stream.
#[derive(Debug)]
pub struct ResponsesWriter {
    /// Id, time, model, and the fields of the request.
    head: Map<String, Value>,
    id: String,
    calls: CallDeltas,
    tools: ClientTools,
    record: Option<Record>,
    /// Finished items.
    output: Vec<Value>,
    open: Option<OpenItem>,
    /// Log probabilities for the next delta of text.
    scored: Vec<ScoredToken>,
    /// Number of events.
    sequence: usize,
}

/// The current, incomplete item.
#[derive(Debug)]
struct OpenItem {
    kind: Kind,
    item: Value,
    /// Text of its content, or of its arguments.
    text: String,
    /// Log probabilities of the tokens of its text.
    scored: Vec<ScoredToken>,
}

impl ResponsesWriter {
    /// Creates the writer of a model's response, which is stored unless the request says otherwise.
    pub fn new(request: ResponsesRequest, model: &str, store: &ResponseStore) -> Self {
        let ResponsesRequest { chat, repeated, items, known, conversation, store: is_stored, background, id } =
            request;
        let first = [
            ("id", id.clone().into()),
            ("object", "response".into()),
            ("created_at", seconds_since_1970().into()),
            ("model", model.into()),
        ];
        let head = first.into_iter().map(|(key, value)| (key.to_owned(), value)).chain(repeated).collect();
        let begun = background.then(|| items.clone());
        let record = Record { store: store.clone(), items, known, conversation, is_stored, background };
        let writer = Self {
            head,
            id,
            calls: CallDeltas::new(&chat),
            tools: chat.client_tools,
            record: Some(record),
            output: Vec::new(),
            open: None,
            scored: Vec::new(),
            sequence: 0,
        };
        if let Some(items) = begun {
            let (object, inputs) = (writer.response("in_progress", Vec::new(), Value::Null), items.len());
            store.insert(&writer.id, object, items, inputs);
        }
        writer
    }

    /// Response object in a state.
    fn response(&self, status: &str, output: Vec<Value>, usage: Value) -> Value {
        let reason = (status == "incomplete").then(|| json!({"reason": "max_output_tokens"}));
        let mut object = self.head.clone();
        let state = [
            ("status", status.into()),
            ("error", Value::Null),
            ("incomplete_details", reason.into()),
            ("output", output.into()),
            ("usage", usage),
        ];
        object.extend(state.map(|(key, value)| (key.to_owned(), value)));
        Value::Object(object)
    }

    /// Response object of a reply with these items; it is recorded.
    fn finished(&mut self, reply: &Reply, output: Vec<Value>) -> Value {
        let status = match reply.finish.reason {
            FinishReason::Cancelled => "cancelled",
            _ if reply.finish.is_cut_off() => "incomplete",
            _ => "completed",
        };
        let object = self.response(status, output.clone(), usage(reply));
        if let Some(record) = self.record.take() {
            record.finish(&self.id, &object, output);
        }
        object
    }

    fn frame(&mut self, event: &'static str, fields: Value) -> Frame {
        let mut data = json!({"type": event, "sequence_number": self.sequence});
        if let (Value::Object(data), Value::Object(fields)) = (&mut data, fields) {
            data.extend(fields);
        }
        self.sequence += 1;
        Frame::named(event, data)
    }

    /// First events of the stream.
    fn begin(&mut self) -> Vec<Frame> {
        let response = self.response("in_progress", Vec::new(), Value::Null);
        ["response.created", "response.in_progress"]
            .map(|event| self.frame(event, json!({"response": response.clone()})))
            .into()
    }

    /// Begins an item, and its part if it has one.
    fn open(&mut self, kind: Kind, item: Value) -> Vec<Frame> {
        let mut frames = self.close("completed");
        if !matches!(kind, Kind::Builtin(_)) {
            frames.push(self.item("response.output_item.added", &item));
        }
        self.open = Some(OpenItem { kind, item, text: String::new(), scored: Vec::new() });
        if kind.call_field().is_none() {
            let part = items::part(kind, "", &[]);
            frames.push(self.of_part("response.content_part.added", json!({"part": part})));
        }
        frames
    }

    /// Event that has an item itself.
    fn item(&mut self, event: &'static str, item: &Value) -> Frame {
        let index = self.output.len();
        self.frame(event, json!({"output_index": index, "item": item}))
    }

    /// Event of the open item, with its id and place.
    fn of_item(&mut self, event: &'static str, fields: Value) -> Frame {
        let id = self.open.as_ref().map(|open| open.item["id"].clone());
        let mut place = json!({"item_id": id, "output_index": self.output.len()});
        if let (Value::Object(place), Value::Object(fields)) = (&mut place, fields) {
            place.extend(fields);
        }
        self.frame(event, place)
    }

    /// Event of the open item's only part.
    fn of_part(&mut self, event: &'static str, mut fields: Value) -> Frame {
        fields["content_index"] = 0.into();
        self.of_item(event, fields)
    }

    /// Adds text to a message or to reasoning.
    fn text(&mut self, kind: Kind, text: &str) -> Vec<Frame> {
        let is_open = self.open.as_ref().is_some_and(|open| open.kind.is(kind));
        let mut frames = if is_open { Vec::new() } else { self.open(kind, items::in_progress(kind)) };
        let scored = std::mem::take(&mut self.scored);
        let logprobs = scores(&scored);
        if let Some(open) = &mut self.open {
            open.text.push_str(text);
            open.scored.extend(scored);
        }
        frames.push(match kind {
            Kind::Reasoning => self.of_part("response.reasoning_text.delta", json!({"delta": text})),
            _ => self.of_part("response.output_text.delta", json!({"delta": text, "logprobs": logprobs})),
        });
        frames
    }

    /// Begins a call, or adds to its arguments.
    fn call(&mut self, delta: CallDelta) -> Vec<Frame> {
        self.scored.clear();
        let (mut frames, fragment) = match delta {
            CallDelta::Arguments(fragment) => (Vec::new(), fragment),
            CallDelta::Started { id, name, arguments } => {
                let (kind, item) = items::call(Some(&id), &name, &self.tools);
                (self.open(kind, item), arguments)
            }
        };
        if let Some(open) = self.open.as_mut().filter(|_| !fragment.is_empty()) {
            open.text.push_str(&fragment);
            let event = match open.kind {
                Kind::Builtin(_) => return frames,
                Kind::Custom => "response.custom_tool_call_input.delta",
                _ => "response.function_call_arguments.delta",
            };
            frames.push(self.of_item(event, json!({"delta": fragment})));
        }
        frames
    }

    /// Ends the open item.
    fn close(&mut self, status: &str) -> Vec<Frame> {
        let Some(OpenItem { kind, text, scored, .. }) = &self.open else { return Vec::new() };
        let (kind, text, scored) = (*kind, text.clone(), scored.clone());
        let mut frames = match kind {
            Kind::Call => {
                vec![self.of_item("response.function_call_arguments.done", json!({"arguments": text}))]
            }
            Kind::Custom => {
                vec![self.of_item("response.custom_tool_call_input.done", json!({"input": text}))]
            }
            // The item of such a call has an action from its first event on; one that was cut off has none.
            Kind::Builtin(_) if text.is_empty() => {
                self.open = None;
                return Vec::new();
            }
            Kind::Builtin(_) => Vec::new(),
            Kind::Reasoning => vec![self.of_part("response.reasoning_text.done", json!({"text": text}))],
            Kind::Message => {
                let logprobs = scores(&scored);
                vec![self.of_part("response.output_text.done", json!({"text": text, "logprobs": logprobs}))]
            }
        };
        if kind.call_field().is_none() {
            let part = items::part(kind, &text, &scored);
            frames.push(self.of_part("response.content_part.done", json!({"part": part})));
        }
        let Some(OpenItem { mut item, .. }) = self.open.take() else { return frames };
        match kind.call_field() {
            Some(field) => item[field] = kind.call_value(&text),
            None => item["content"] = json!([items::part(kind, &text, &scored)]),
        }
        if let Kind::Builtin(_) = kind {
            frames.push(self.item("response.output_item.added", &item));
        }
        items::finish(&mut item, status);
        frames.push(self.item("response.output_item.done", &item));
        self.output.push(item);
        frames
    }

    /// Last events of the stream.
    fn finish(&mut self, reply: &Reply) -> Vec<Frame> {
        let is_cut_off = reply.finish.is_cut_off();
        let mut frames = self.close(if is_cut_off { "incomplete" } else { "completed" });
        let output = std::mem::take(&mut self.output);
        let response = self.finished(reply, output);
        let event = if is_cut_off { "response.incomplete" } else { "response.completed" };
        frames.push(self.frame(event, json!({"response": response})));
        frames
    }
}

impl ResponseWriter for ResponsesWriter {
    const FRAMING: Framing = Framing::Events;

    fn object(&mut self, choices: &[Choice]) -> Value {
        match choices {
            [Choice { reply, logprobs, .. }, ..] => {
                let items = items::of_reply(reply, logprobs.as_deref().unwrap_or_default(), &self.tools);
                self.finished(reply, items)
            }
            [] => self.response("failed", Vec::new(), Value::Null),
        }
    }

    fn frames(&mut self, _: usize, event: &ConversationEvent) -> Vec<Frame> {
        let mut frames = if self.sequence == 0 { self.begin() } else { Vec::new() };
        frames.extend(match event {
            ConversationEvent::Text(text) => self.text(Kind::Message, text),
            ConversationEvent::Reasoning(text) => self.text(Kind::Reasoning, text),
            ConversationEvent::Logprobs(token) => {
                self.scored.push(token.clone());
                Vec::new()
            }
            ConversationEvent::Finished(reply) => self.finish(reply),
            event => self.calls.delta(event).map(|delta| self.call(delta)).unwrap_or_default(),
        });
        if matches!(event, ConversationEvent::ToolCall(_)) {
            frames.extend(self.close("completed"));
        }
        frames
    }

    fn error(&mut self, error: &ApiError) -> Frame {
        let ApiError { message, param, code, kind, .. } = error;
        let code = code.unwrap_or(kind);
        self.frame("error", json!({"code": code, "message": message, "param": param}))
    }
}

/// Token counts.
pub(super) fn usage(reply: &Reply) -> Value {
    let usage = &reply.finish.usage;
    json!({
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": reply.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.output_tokens,
    })
}
