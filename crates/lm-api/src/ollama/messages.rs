//! `messages` of a request in the form that OpenAI's API has them.

use lm_conversation::Message;
use serde_json::{Value, json};

use crate::error::{ApiError, Result};
use crate::fields::json_type;
use crate::limits::Limits;
use crate::media;
use crate::messages::messages;

/// Reads `messages`, with Ollama's names of their fields: `thinking`, `tool_name`, `images`.
pub(super) fn read(mut body: Vec<Value>, limits: &Limits) -> Result<Vec<Message>> {
    for (index, message) in body.iter_mut().enumerate() {
        let Value::Object(fields) = message else { continue };
        let images = images(fields.shift_remove("images"), &format!("messages[{index}].images"))?;
        if !images.is_empty() && fields.get("content").is_none_or(Value::is_null) {
            fields.insert("content".to_owned(), "".into());
        }
        if let Some(content) = fields.get_mut("content") {
            no_audio(content, &format!("messages[{index}].content"))?;
            *content = with_images(images, content.take());
        }
        for (name, known) in [("thinking", "reasoning_content"), ("tool_name", "name")] {
            if let Some(value) = fields.shift_remove(name) {
                fields.entry(known).or_insert(value);
            }
        }
    }
    messages(body, limits)
}

/// Refuses audio clips among the parts of a content: Ollama's API has none.
fn no_audio(content: &Value, at: &str) -> Result<()> {
    let parts = content.as_array().map_or(std::slice::from_ref(content), Vec::as_slice);
    for (index, part) in parts.iter().enumerate() {
        if let Some(kind @ ("audio" | "input_audio")) = part["type"].as_str() {
            return Err(media::unsupported(&format!("{at}[{index}]"), kind, "text"));
        }
    }
    Ok(())
}

/// Reads `images`, each in base64 or as a data URL, and returns them in base64.
pub(super) fn images(images: Option<Value>, at: &str) -> Result<Vec<String>> {
    match images {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(images)) => {
            let images = images.iter().enumerate();
            images.map(|(index, image)| media::image_base64(image, &format!("{at}[{index}]"))).collect()
        }
        Some(other) => Err(ApiError::unexpected(at, json_type(&other), "an array")),
    }
}

/// Content of a message with images, which are before its text as Ollama's prompts have them.
pub(super) fn with_images(images: Vec<String>, text: Value) -> Value {
    if images.is_empty() {
        return text;
    }
    let images = images.into_iter().map(|image| json!({"type": "image", "blob": image}));
    let content = match text {
        Value::Array(parts) => parts,
        text => vec![json!({"type": "text", "text": text})],
    };
    images.chain(content).collect()
}
