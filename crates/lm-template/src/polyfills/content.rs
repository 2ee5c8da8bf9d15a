//! Forms of content.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::json_text;
use super::media_order::has_media;
use super::template_input::{TemplateInput, role, text};
use crate::capabilities::Capabilities;
use crate::reasoning_part;

/// Returns true if content is a list of text parts only.
pub(super) fn is_text_parts(content: &Value) -> bool {
    let is_text = |part: &Value| part.is_string() || (part["type"] == "text" && part["text"].is_string());
    content.as_array().is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_text))
}

/// Returns true if an item of the list is an object. A list of strings from a tool is a result, not a list of
/// parts.
pub(super) fn has_part(list: &Value) -> bool {
    list.as_array().is_some_and(|items| items.iter().any(Value::is_object))
}

/// Reasoning parts of the assistant become its `reasoning_content`, which fails in no template.
pub(super) fn move_reasoning(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    !capabilities.reasoning_parts
        && input.each(|message| {
            let is_models = matches!(role(message), "assistant" | "model");
            let Some(content) = message.get_mut("content").filter(|_| is_models) else { return false };
            let before = content.as_array().map_or(1, Vec::len);
            let reasoning = reasoning_part::take(content);
            let moved = content.as_array().map_or(1, Vec::len) < before || content.is_null();
            if content.is_null() {
                *content = "".into();
            }
            if let Some(text) = reasoning {
                message.entry("reasoning_content").or_insert_with(|| text.into());
            }
            moved
        })
}

/// A list with an image stays unchanged: the template handles it.
pub(super) fn parts_as_text(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    (capabilities.text_content || capabilities.typed_content)
        && input.each(|message| {
            let reads_parts = match role(message) {
                "system" => capabilities.typed_system,
                role if role == capabilities.model_role => capabilities.typed_assistant,
                _ => capabilities.typed_content,
            };
            if reads_parts {
                return false;
            }
            let parts = message
                .get("content")
                .filter(|content| is_text_parts(content) && (role(message) != "tool" || has_part(content)));
            let Some(joined) = parts.map(|_| text(message)) else { return false };
            message.insert("content".to_owned(), joined.into());
            true
        })
}

pub(super) fn text_as_parts(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    capabilities.typed_content
        && !capabilities.text_content
        && input.each(|message| {
            let Some(Value::String(text)) = message.get("content") else { return false };
            let parts = if text.is_empty() { json!([]) } else { json!([{"type": "text", "text": text}]) };
            message.insert("content".to_owned(), parts);
            true
        })
}

/// Results as `{"name", "response"}`, with the name of the function that the call has.
pub(super) fn results_as_response(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    let mut called: HashMap<String, Value> = HashMap::new();
    capabilities.response_results
        && input.each(|message| {
            for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
                let name = &call.get("function").unwrap_or(call)["name"];
                called.extend(call["id"].as_str().map(|id| (id.to_owned(), name.clone())));
            }
            let content =
                message.get("content").filter(|content| role(message) == "tool" && !is_response(content));
            let content = content.filter(|content| !has_media(content));
            let Some(response) = content.map(response_of) else { return false };
            let id = message.get("tool_call_id").and_then(Value::as_str);
            let name = message.get("name").cloned().or_else(|| called.get(id?).cloned());
            let content = json!({"name": name.unwrap_or_else(|| "".into()), "response": response});
            message.insert("content".to_owned(), content);
            true
        })
}

/// Returns true if a result is in this form already, as JSON or as the template's text.
fn is_response(content: &Value) -> bool {
    let is_one = |item: &Value| item["name"].is_string() && item["response"].is_object();
    match content {
        Value::Array(items) => !items.is_empty() && items.iter().all(is_one),
        Value::String(text) => text.trim_start().starts_with("response:"),
        other => is_one(other),
    }
}

/// The object that a result is, or one with the result as its value.
fn response_of(content: &Value) -> Value {
    let parsed = content.as_str().and_then(|text| serde_json::from_str(text).ok());
    match parsed.as_ref().unwrap_or(content) {
        object @ Value::Object(_) => object.clone(),
        _ if is_text_parts(content) => json!({"value": joined(content)}),
        _ => json!({"value": content}),
    }
}

/// The texts of parts, joined.
fn joined(parts: &Value) -> String {
    let parts = parts.as_array().into_iter().flatten();
    parts.filter_map(|part| part.as_str().or_else(|| part["text"].as_str())).collect()
}

pub(super) fn result_as_json_text(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    !capabilities.object_results
        && input.each(|message| {
            let result = message.get("content").filter(|content| {
                let other = !content.is_string() && !content.is_null();
                role(message) == "tool" && other && !is_media_or_text(content)
            });
            let Some(text) = result.map(json_text) else { return false };
            message.insert("content".to_owned(), text.into());
            true
        })
}

/// Returns true if a tool returned message parts: every item has a known type.
fn is_media_or_text(content: &Value) -> bool {
    const TYPES: [&str; 6] = ["text", "image", "image_url", "audio", "input_audio", "tool_response"];
    let is_part = |part: &Value| part["type"].as_str().is_some_and(|kind| TYPES.contains(&kind));
    content.as_array().is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_part))
}
