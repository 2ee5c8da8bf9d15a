//! Responses of Anthropic's messages.

use lm_conversation::{ConversationEvent, Reply};
use serde_json::{Value, json};

use super::error::anthropic_error;
use super::message::{Stop, content, message, reply_usage, usage};
use crate::call_deltas::{CallDelta, CallDeltas};
use crate::error::ApiError;
use crate::ids::random_id;
use crate::request::ChatRequest;
use crate::response_writer::{Choice, Frame, Framing, ResponseWriter};

/// Writer of `message` objects, and of the events of their streams: `message_start`, for each block of the
/// content `content_block_start`, `content_block_delta` and `content_block_stop`, then `message_delta` and
/// `message_stop`.
#[derive(Debug)]
pub struct MessageWriter {
    id: String,
    model: String,
    stop_sequences: Vec<String>,
    /// True after `message_start`.
    started: bool,
    calls: CallDeltas,
    /// Type of the open block.
    block: Option<&'static str>,
    /// Number of started blocks.
    blocks: usize,
}

impl MessageWriter {
    /// Creates a writer for the response of a model to a request.
    pub fn for_request(request: &ChatRequest, model: &str) -> Self {
        Self {
            id: random_id("msg_"),
            model: model.to_owned(),
            stop_sequences: request.stop.clone(),
            started: false,
            calls: CallDeltas::new(request),
            block: None,
            blocks: 0,
        }
    }

    /// Begins the stream. The counts of the prompt are known with its prefill; the last event has them too.
    fn start(&mut self, event: &ConversationEvent) -> Vec<Frame> {
        if std::mem::replace(&mut self.started, true) {
            return Vec::new();
        }
        let usage = match event {
            ConversationEvent::Prefill(prefill) => usage(prefill.prompt_tokens, prefill.cached_tokens, 0),
            _ => usage(0, 0, 0),
        };
        let message = message(&self.id, &self.model, Vec::new(), Stop::default(), usage);
        vec![frame("message_start", json!({"message": message})), frame("ping", json!({}))]
    }

    /// Writes a delta of text or reasoning, in the open block if that is of its type.
    fn text(&mut self, block: &'static str, empty: Value, delta: Value) -> Vec<Frame> {
        let mut frames = Vec::new();
        if self.block != Some(block) {
            frames.extend(self.close());
            frames.push(self.open(block, empty));
        }
        frames.push(self.delta(delta));
        frames
    }

    fn call(&mut self, delta: CallDelta) -> Vec<Frame> {
        let (mut frames, json) = match delta {
            CallDelta::Arguments(json) => (Vec::new(), json),
            CallDelta::Started { id, name, arguments } => {
                let mut frames: Vec<_> = self.close().into_iter().collect();
                let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
                frames.push(self.open("tool_use", block));
                (frames, arguments)
            }
        };
        if !json.is_empty() {
            frames.push(self.delta(json!({"type": "input_json_delta", "partial_json": json})));
        }
        frames
    }

    fn open(&mut self, kind: &'static str, block: Value) -> Frame {
        self.block = Some(kind);
        self.blocks += 1;
        frame("content_block_start", json!({"index": self.blocks - 1, "content_block": block}))
    }

    fn delta(&self, delta: Value) -> Frame {
        frame("content_block_delta", json!({"index": self.blocks - 1, "delta": delta}))
    }

    fn close(&mut self) -> Option<Frame> {
        let index = self.blocks.checked_sub(1)?;
        self.block.take().map(|_| frame("content_block_stop", json!({"index": index})))
    }

    fn finish(&mut self, reply: &Reply) -> Vec<Frame> {
        let stop = Stop::new(reply, &self.stop_sequences);
        let delta = json!({"stop_reason": stop.reason, "stop_sequence": stop.sequence});
        let mut frames: Vec<_> = self.close().into_iter().collect();
        frames.push(frame("message_delta", json!({"delta": delta, "usage": reply_usage(reply)})));
        frames.push(frame("message_stop", json!({})));
        frames
    }
}

impl ResponseWriter for MessageWriter {
    const FRAMING: Framing = Framing::Events;
    const KEEP_ALIVE: Option<&'static str> = Some("ping");

    fn object(&mut self, choices: &[Choice]) -> Value {
        let reply = &choices[0].reply;
        let stop = Stop::new(reply, &self.stop_sequences);
        message(&self.id, &self.model, content(reply), stop, reply_usage(reply))
    }

    fn frames(&mut self, _: usize, event: &ConversationEvent) -> Vec<Frame> {
        let mut frames = self.start(event);
        frames.extend(match event {
            ConversationEvent::Text(text) => {
                let empty = json!({"type": "text", "text": ""});
                self.text("text", empty, json!({"type": "text_delta", "text": text}))
            }
            ConversationEvent::Reasoning(text) => {
                let empty = json!({"type": "thinking", "thinking": "", "signature": ""});
                self.text("thinking", empty, json!({"type": "thinking_delta", "thinking": text}))
            }
            ConversationEvent::Finished(reply) => self.finish(reply),
            event => self.calls.delta(event).map(|delta| self.call(delta)).unwrap_or_default(),
        });
        frames
    }

    fn error(&mut self, error: &ApiError) -> Frame {
        Frame::named("error", anthropic_error(error))
    }
}

/// Event whose data has its name as `type`.
fn frame(event: &'static str, mut data: Value) -> Frame {
    data["type"] = event.into();
    Frame::named(event, data)
}
