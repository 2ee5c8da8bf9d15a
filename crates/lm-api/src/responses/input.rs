//! `input` and `instructions`: items as messages.

use lm_template::Message;
use serde_json::{Map, Value, json};

use super::item_kinds::{ITEMS, ItemKind};
use super::store::ResponseStore;
use crate::error::{ApiError, Result};
use crate::fields::{json_type, shown};
use crate::limits::{Limits, at_most};
use crate::messages::messages;

/// Reads `input` as a list of items: a text is the user's message.
pub(super) fn items(input: Value, limits: &Limits) -> Result<Vec<Value>> {
    match input {
        Value::String(text) => Ok(vec![json!({"type": "message", "role": "user", "content": text})]),
        Value::Array(items) => {
            at_most("input", items.len(), limits.messages, "items")?;
            Ok(items)
        }
        other => Err(ApiError::unexpected("input", json_type(&other), "text or an array of items")),
    }
}

/// Items as messages, with the types of those that are left out.
#[derive(Debug, Default)]
pub(super) struct Converted {
    pub messages: Vec<Message>,
    /// Types of items whose content only OpenAI's servers can read.
    pub left_out: Vec<String>,
}

/// Converts items to messages. Reasoning, text and calls of the assistant that follow one another are one
/// message.
///
/// `known` is the number of first items that come from an earlier response: errors name the others by their
/// index in `input`.
pub(super) fn conversation(items: &[Value], known: usize, limits: &Limits) -> Result<Converted> {
    let (mut converted, mut left_out): (Vec<Value>, Vec<String>) = (Vec::new(), Vec::new());
    for (index, item) in items.iter().enumerate() {
        let at = format!("input[{}]", index.saturating_sub(known));
        let kind = kind(item, &at)?;
        if kind.read.is_opaque(item) && !left_out.iter().any(|known| known == kind.name) {
            left_out.push(kind.name.to_owned());
        }
        for message in kind.read.messages(item) {
            check(&message, &at, limits)?;
            match converted.last_mut() {
                Some(last) if continues(last, &message) => merge(last, message),
                _ => converted.push(message),
            }
        }
    }
    Ok(Converted { messages: messages(converted, limits)?, left_out })
}

/// The items, with the stored ones in place of references to them; `name` is the field that they are in.
pub(super) fn resolved(items: Vec<Value>, name: &str, store: &ResponseStore) -> Result<Vec<Value>> {
    let resolved = |(index, item): (usize, Value)| {
        if item["type"] != "item_reference" {
            return Ok(item);
        }
        let stored = item["id"].as_str().and_then(|id| store.item(id));
        stored.ok_or_else(|| {
            let message = format!("there is no stored item {}", shown(&item["id"]));
            ApiError::refused(404, "invalid_request_error", message).with_param(format!("{name}[{index}].id"))
        })
    };
    items.into_iter().enumerate().map(resolved).collect()
}

/// Type of an item; `message` is the default.
fn kind(item: &Value, at: &str) -> Result<&'static ItemKind> {
    if !item.is_object() {
        return Err(ApiError::unexpected(at, shown(item), "an object"));
    }
    let name = item.get("type").cloned().unwrap_or_else(|| "message".into());
    let known = ITEMS.iter().find(|kind| name == kind.name);
    known.ok_or_else(|| {
        let expected = ITEMS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
        let message =
            format!("the `type` of `{at}` is {}, expected one of {expected}, item_reference", shown(&name));
        ApiError::invalid_param(format!("{at}.type"), message)
    })
}

/// Tools that items declare.
pub(super) fn declared_tools(items: &[Value]) -> Vec<Value> {
    let declares = |item: &&Value| item["type"] == "additional_tools" || item["type"] == "tool_search_output";
    let tools = items.iter().filter(declares).filter_map(|item| item["tools"].as_array());
    tools.flatten().cloned().collect()
}

/// Last setting of the responses that items have at this path.
pub(super) fn setting(items: &[Value], path: &str) -> Option<Value> {
    let mut updates = items.iter().rev().filter(|item| item["type"] == "configuration_update");
    updates.find_map(|item| item.pointer(path).filter(|value| !value.is_null()).cloned())
}

/// Checks a message alone, so that its error names the item.
fn check(message: &Value, at: &str, limits: &Limits) -> Result<()> {
    let checked = messages(vec![message.clone()], limits);
    let renamed = |error: ApiError| ApiError {
        param: error.param.as_ref().map(|param| param.replacen("messages[0]", at, 1)),
        message: error.message.replace("messages[0]", at),
        ..error
    };
    checked.map(|_| ()).map_err(renamed)
}

/// Returns true if `next` is a further part of the assistant's message `last`.
fn continues(last: &Value, next: &Value) -> bool {
    let is_assistant = |message: &Value| message["role"] == "assistant";
    let has_calls = !last["tool_calls"].is_null();
    let is_text = !next["content"].is_null();
    is_assistant(last)
        && is_assistant(next)
        && next["reasoning_content"].is_null()
        && !(is_text && (has_calls || !last["content"].is_null()))
}

/// Adds the parts of `next` to `last`.
fn merge(last: &mut Value, next: Value) {
    let Value::Object(next) = next else { return };
    let parts: Map<String, Value> = next.into_iter().filter(|(_, value)| !value.is_null()).collect();
    for (key, value) in parts {
        match (&mut last[&key], value) {
            (Value::Array(calls), Value::Array(more)) if key == "tool_calls" => calls.extend(more),
            (place, value) => *place = value,
        }
    }
}
