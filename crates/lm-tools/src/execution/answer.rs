//! Place of a call's only result.

use async_channel::Sender;
use lm_template::{Message, ToolCall};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Error of a call that was not run.
pub(super) const NOT_RUN: &str = "the call was not run: the turn was ended";
/// Maximum depth of a result, as of JSON that is read.
const MAX_DEPTH: usize = 128;

/// Place of the result of one call: the first one that is given counts.
#[derive(Debug)]
pub(super) struct Answer {
    /// Number of the call in its reply.
    pub index: usize,
    pub id: Option<String>,
    pub name: String,
    pub started: Instant,
    pub max_bytes: usize,
    pub results: Sender<(usize, Message)>,
    pub given: AtomicBool,
}

impl Answer {
    /// Gives the result; a later one is dropped.
    pub fn give(&self, result: Result<Value, String>) {
        let elapsed_ms = self.started.elapsed().as_millis();
        if self.given.swap(true, Ordering::AcqRel) {
            tracing::warn!(tool = self.name, elapsed_ms, "an abandoned call has ended");
            return;
        }
        tracing::debug!(tool = self.name, elapsed_ms, failed = result.is_err());
        let result = result.and_then(|value| match is_within(&value, MAX_DEPTH) {
            true => Ok(value),
            false => Err(format!("the result is nested deeper than {MAX_DEPTH} levels")),
        });
        let result = result.unwrap_or_else(|error| failure(&self.name, &error));
        let content = shortened(message_content(result), self.max_bytes);
        let message = Message::tool(self.id.as_deref(), self.name.as_str(), content);
        let _ = self.results.try_send((self.index, message)); // Nobody waits for it any more.
    }

    /// Returns true if there is a result.
    pub fn is_given(&self) -> bool {
        self.given.load(Ordering::Acquire)
    }
}

/// Answer that its holder owes: it is an error if the holder is dropped without a result, as by a runtime that ends.
#[derive(Debug)]
pub(super) struct Owed(pub Arc<Answer>);

impl Drop for Owed {
    fn drop(&mut self) {
        if !self.0.is_given() {
            self.0.give(Err("the call ended without a result; it may have taken effect".to_owned()));
        }
    }
}

/// Result of a call that failed.
fn failure(name: &str, error: &str) -> Value {
    json!({"tool_name": name, "error": error})
}

/// Result of a call that was not run.
pub(crate) fn not_run(call: &ToolCall) -> Message {
    let result = failure(&call.name, NOT_RUN);
    Message::tool(call.id.as_deref(), call.name.as_str(), result)
}

/// Returns true if a value has at most so many levels.
fn is_within(value: &Value, levels: usize) -> bool {
    let Some(inside) = levels.checked_sub(1) else { return false };
    match value {
        Value::Array(items) => items.iter().all(|item| is_within(item, inside)),
        Value::Object(members) => members.values().all(|member| is_within(member, inside)),
        _ => true,
    }
}

/// Numbers and booleans become text, as in chat APIs; so do lists, which templates would read as parts of a message.
fn message_content(result: Value) -> Value {
    match result {
        Value::String(_) | Value::Object(_) => result,
        other => Value::String(other.to_string()),
    }
}

/// Cuts a result of more than `max` bytes to a text, with a mark.
fn shortened(content: Value, max: usize) -> Value {
    let text = match content {
        Value::String(text) if text.len() > max => text,
        Value::Object(object) => {
            let text = Value::Object(object.clone()).to_string();
            if text.len() <= max {
                return Value::Object(object);
            }
            text
        }
        other => return other,
    };
    let shown = &text[..text.floor_char_boundary(max)];
    Value::String(format!("{shown}\n[cut: {} of {} bytes]", shown.len(), text.len()))
}
