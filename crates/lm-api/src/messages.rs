//! `messages` of a request.

use lm_template::{Message, Part, is_reasoning_part, messages_from_json};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::client_tools::custom_arguments;
use crate::error::{ApiError, Result};
use crate::error_map;
use crate::fields::{json_type, shown};
use crate::limits::{Limits, at_most};
use crate::media;

/// Roles of the API, its older and its documented variants.
const ROLES: [&str; 8] =
    ["developer", "system", "user", "assistant", "tool", "function", "model", "tool_call"];

/// Schema of `messages`.
pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
    schema_of(&ROLES)
}

/// Schema of messages of these roles.
pub(crate) fn schema_of(roles: &[&str]) -> Schema {
    let content =
        "Text, or an array of parts: `text`, `image_url` with a data URL, `input_audio` with base64.";
    json_schema!({"type": "array", "minItems": 1, "items": {
        "type": "object",
        "required": ["role"],
        "properties": {"role": {"enum": roles}, "content": {"description": content}},
    }})
}

/// Reads `messages`: at least one.
pub(crate) fn messages(mut messages: Vec<Value>, limits: &Limits) -> Result<Vec<Message>> {
    if messages.is_empty() {
        return Err(ApiError::unexpected("messages", "empty", "at least one message"));
    }
    at_most("messages", messages.len(), limits.messages, "messages")?;
    for (index, message) in messages.iter_mut().enumerate() {
        normalize(message, &format!("messages[{index}]"))?;
    }
    let messages = messages_from_json(Value::Array(messages)).map_err(|error| error_map::template(&error))?;
    check_media(&messages, limits)?;
    Ok(messages)
}

/// Checks the number of images and audio.
pub(crate) fn check_media(messages: &[Message], limits: &Limits) -> Result<()> {
    let parts = messages.iter().flat_map(|message| message.content.parts());
    let media = parts.filter(|part| matches!(part, Part::Image(_) | Part::Audio(_))).count();
    at_most("messages", media, limits.media, "images and audio")
}

/// Converts older and foreign spellings of a message, and checks its role and parts.
fn normalize(message: &mut Value, at: &str) -> Result<()> {
    let Value::Object(fields) = message else {
        return Err(ApiError::unexpected(at, json_type(message), "an object"));
    };
    let role = fields.get("role").cloned().unwrap_or_default();
    if !role.as_str().is_some_and(|role| ROLES.contains(&role)) {
        let expected = format!("one of {}", ROLES.join(", "));
        return Err(ApiError::unexpected(format!("{at}.role"), shown(&role), expected));
    }
    if role == "function" {
        fields.insert("role".to_owned(), "tool".into());
    }
    if let Some(call) = fields.shift_remove("function_call").filter(|call| !call.is_null())
        && !fields.get("tool_calls").is_some_and(Value::is_array)
    {
        fields.insert("tool_calls".to_owned(), json!([{"type": "function", "function": call}]));
    }
    if let Some(Value::Array(calls)) = fields.get_mut("tool_calls") {
        calls.iter_mut().for_each(custom_as_function);
    }
    if let Some(refusal @ Value::String(_)) = fields.shift_remove("refusal")
        && fields.get("content").is_none_or(|content| content.is_null() || content == "")
    {
        fields.insert("content".to_owned(), refusal);
    }
    if let Some(reasoning) = fields.shift_remove("reasoning") {
        fields.entry("reasoning_content").or_insert(reasoning);
    }
    if let Some(Value::Array(parts)) =
        fields.get_mut("content").filter(|_| role != "assistant" && role != "model")
    {
        // Reasoning is the assistant's alone; elsewhere it is text.
        parts.iter_mut().for_each(reasoning_as_text);
    }
    let is_result = role == "tool" || role == "function";
    if role != "tool_call"
        && let Some(content) = fields.get_mut("content")
    {
        check_content(content, is_result, &format!("{at}.content"))?;
    }
    Ok(())
}

/// Replaces the call of a custom tool by that of its function.
fn custom_as_function(call: &mut Value) {
    let Some(custom) = call.get_mut("custom").map(Value::take) else { return };
    let function = json!({"name": custom["name"], "arguments": custom_arguments(&custom["input"])});
    *call = json!({"id": call["id"], "type": "function", "function": function});
}

fn reasoning_as_text(part: &mut Value) {
    if is_reasoning_part(part) {
        let text = ["thinking", "reasoning", "text"].into_iter().find_map(|key| part[key].as_str());
        *part = json!({"type": "text", "text": text.unwrap_or_default()});
    }
}

/// Converts the parts of a content: text, images and audio. The result of a tool may be any other JSON as
/// well.
fn check_content(content: &mut Value, is_result: bool, at: &str) -> Result<()> {
    match content {
        Value::Array(parts) if !is_result || (!parts.is_empty() && parts.iter().all(is_result_part)) => parts
            .iter_mut()
            .enumerate()
            .try_for_each(|(index, part)| check_part(part, is_result, &format!("{at}[{index}]"))),
        Value::Object(_) if !is_result || is_result_part(content) => check_part(content, is_result, at),
        _ => Ok(()),
    }
}

/// Returns true if an item of a result is a part: of a known type, with its key. Other items are data.
fn is_result_part(item: &Value) -> bool {
    const PARTS: [(&str, &[&str]); 9] = [
        ("text", &["text"]),
        ("refusal", &["refusal"]),
        ("image_url", &["image_url"]),
        ("image", &["blob", "data", "source"]),
        ("input_audio", &["input_audio"]),
        ("audio", &["blob", "data"]),
        ("tool_response", &["response"]),
        ("file", &["file", "file_id", "file_data"]),
        ("video_url", &["video_url"]),
    ];
    PARTS.iter().any(|(kind, keys)| item["type"] == *kind && keys.iter().any(|key| item.get(*key).is_some()))
}

fn check_part(part: &mut Value, is_result: bool, at: &str) -> Result<()> {
    let kind = match part {
        Value::Object(fields) => fields.get("type").cloned().unwrap_or_default(),
        Value::String(_) => return Ok(()),
        // The error of an invalid part names its type.
        _ => return Ok(()),
    };
    match kind.as_str() {
        // Further keys, such as annotations, are not for the model.
        Some("text") if is_result => {
            *part = json!({"type": "text", "text": part["text"].take()});
            Ok(())
        }
        Some("text" | "tool_response") => Ok(()),
        Some(_) if is_reasoning_part(part) => Ok(()),
        Some("refusal") => {
            let refusal = part.get_mut("refusal").map(Value::take).unwrap_or_default();
            *part = Value::Object(Map::from_iter([
                ("type".to_owned(), "text".into()),
                ("text".to_owned(), refusal),
            ]));
            Ok(())
        }
        Some(kind @ ("image_url" | "image" | "input_audio" | "audio")) => media::normalize(part, kind, at),
        Some(kind @ ("file" | "video_url" | "video")) => {
            Err(media::unsupported(at, kind, "text, an image or an audio clip"))
        }
        _ => {
            let message = format!(
                "the `type` of `{at}` is {}, expected \"text\", \"image_url\" or \"input_audio\"",
                shown(&kind)
            );
            Err(ApiError::invalid_param(format!("{at}.type"), message))
        }
    }
}
