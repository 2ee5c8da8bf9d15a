//! `input` and `instructions`: items as messages.

use lm_template::Message;
use serde_json::{Map, Value, json};

use crate::client_tools::{custom_arguments, flat_name};
use crate::error::{ApiError, Result};
use crate::fields::{json_type, shown};
use crate::limits::{Limits, at_most};
use crate::messages::messages;

/// Items of tools that run on OpenAI's servers, which say nothing to another model.
const HOSTED: [&str; 8] = [
    "code_interpreter_call",
    "computer_call",
    "computer_call_output",
    "file_search_call",
    "image_generation_call",
    "mcp_list_tools",
    "tool_search_call",
    "web_search_call",
];

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

/// Converts items to messages. Reasoning, text and calls of the assistant that follow one another are one
/// message.
///
/// `known` is the number of first items that come from an earlier response: errors name the others by their
/// index in `input`.
pub(super) fn conversation(items: &[Value], known: usize, limits: &Limits) -> Result<Vec<Message>> {
    let mut converted: Vec<Value> = Vec::new();
    let is_left_out = |item: &Value| item["type"].as_str().is_some_and(|kind| HOSTED.contains(&kind));
    for (index, item) in items.iter().enumerate().filter(|(_, item)| !is_left_out(item)) {
        let at = format!("input[{}]", index.saturating_sub(known));
        let message = message(item, &at)?;
        check(&message, &at, limits)?;
        match converted.last_mut() {
            Some(last) if continues(last, &message) => merge(last, message),
            _ => converted.push(message),
        }
    }
    messages(converted, limits)
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

/// Message of an item, in the form of chat completions.
fn message(item: &Value, at: &str) -> Result<Value> {
    let kind = item.get("type").cloned().unwrap_or_else(|| "message".into());
    match kind.as_str() {
        Some("message") => Ok(json!({"role": item["role"], "content": content(&item["content"])})),
        Some("function_call") => {
            let function = json!({"name": called(item), "arguments": item["arguments"]});
            let call = json!({"id": item["call_id"], "type": "function", "function": function});
            Ok(json!({"role": "assistant", "content": null, "tool_calls": [call]}))
        }
        Some("custom_tool_call") => {
            let function = json!({"name": called(item), "arguments": custom_arguments(&item["input"])});
            let call = json!({"id": item["call_id"], "type": "function", "function": function});
            Ok(json!({"role": "assistant", "content": null, "tool_calls": [call]}))
        }
        Some("function_call_output" | "custom_tool_call_output") => {
            let output = content(&item["output"]);
            Ok(json!({"role": "tool", "tool_call_id": item["call_id"], "content": output}))
        }
        Some("reasoning") => {
            Ok(json!({"role": "assistant", "content": null, "reasoning_content": reasoning(item)}))
        }
        _ => {
            let expected = "message, function_call, function_call_output or reasoning";
            let message = format!("the `type` of `{at}` is {}, expected {expected}", shown(&kind));
            Err(ApiError::invalid_param(format!("{at}.type"), message))
        }
    }
}

/// Name of the function that an item calls, with its namespace.
fn called(item: &Value) -> Value {
    match item["name"].as_str() {
        Some(name) => flat_name(item["namespace"].as_str(), name).into(),
        None => item["name"].clone(),
    }
}

/// Content with the types of parts that chat completions have.
fn content(content: &Value) -> Value {
    let Value::Array(parts) = content else { return content.clone() };
    let part = |part: &Value| {
        let mut part = part.clone();
        let kind = match part["type"].as_str() {
            Some("input_text" | "output_text" | "summary_text") => "text",
            Some("input_image") => "image_url",
            Some("input_file") => "file",
            _ => return part,
        };
        part["type"] = kind.into();
        part
    };
    parts.iter().map(part).collect()
}

/// Text of a reasoning item: its content, or else its summary.
fn reasoning(item: &Value) -> String {
    let texts = |key: &str| {
        let parts = item[key].as_array().into_iter().flatten();
        parts.filter_map(|part| part["text"].as_str()).collect::<String>()
    };
    let text = texts("content");
    if text.is_empty() { texts("summary") } else { text }
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
