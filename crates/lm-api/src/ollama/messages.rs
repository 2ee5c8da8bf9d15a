//! `messages` of a request in the form that OpenAI's API has them.

use lm_conversation::Message;
use serde_json::{Map, Value};

use crate::error::{ApiError, Result};
use crate::limits::Limits;
use crate::messages::messages;

/// Reads `messages`, with Ollama's names of their fields: `thinking`, `tool_name`, `images`.
pub(super) fn read(mut body: Value, limits: &Limits) -> Result<Vec<Message>> {
    for (index, message) in body.as_array_mut().into_iter().flatten().enumerate() {
        let Value::Object(fields) = message else { continue };
        no_images(fields, &format!("messages[{index}].images"))?;
        for (name, known) in [("thinking", "reasoning_content"), ("tool_name", "name")] {
            if let Some(value) = fields.shift_remove(name) {
                fields.entry(known).or_insert(value);
            }
        }
    }
    messages(body, limits)
}

/// Refuses images.
pub(super) fn no_images(fields: &mut Map<String, Value>, at: &str) -> Result<()> {
    match fields.shift_remove("images") {
        Some(Value::Array(images)) if !images.is_empty() => {
            let message = format!("`{at}` has images, which this model cannot read; it reads text");
            Err(ApiError::invalid_param(at, message).with_code("unsupported_content"))
        }
        _ => Ok(()),
    }
}
