//! Steps of transformers' `apply_chat_template` before and after the template.
//! Source: transformers 5.23.0, `utils/chat_template_utils.py`.

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::prompt::Prompt;

/// Names of the reasoning field of a message.
const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];
/// Marker appended to the text to continue while the template renders.
const TAG: &str = "CONTINUE_FINAL_MESSAGE_TAG ";

/// The field of the last message that the model continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ContinueField<'a> {
    /// The content; for a list of parts, the last part with text.
    #[default]
    Content,
    /// Another field, such as `reasoning_content`.
    Named(&'a str),
}

impl<'a> ContinueField<'a> {
    fn name(self) -> &'a str {
        match self {
            ContinueField::Content => "content",
            ContinueField::Named(name) => name,
        }
    }
}

/// Prepares messages for a template: drops null keys and sets reasoning under every name that templates read.
///
/// # Errors
/// [`Error::EmptyConversation`].
pub(crate) fn prepare(messages: &[Value]) -> Result<Vec<Value>> {
    if messages.is_empty() {
        return Err(Error::EmptyConversation);
    }
    let prepare = |message: &Value| match message {
        Value::Object(message) => Value::Object(prepare_message(message)),
        other => other.clone(),
    };
    Ok(messages.iter().map(prepare).collect())
}

fn prepare_message(message: &Map<String, Value>) -> Map<String, Value> {
    let present = message.iter().filter(|(_, value)| !value.is_null());
    let mut message: Map<String, Value> = present.map(|(key, value)| (key.clone(), value.clone())).collect();
    if let Some(reasoning) = REASONING.iter().find_map(|name| message.get(*name)).cloned() {
        message.insert("reasoning_content".to_owned(), reasoning.clone());
        message.entry("thinking").or_insert(reasoning);
    }
    message
}

/// Appends the marker to the text to continue; returns the text without it.
pub(crate) fn tag_final_message(
    messages: &mut [Value],
    field: ContinueField<'_>,
    template: &str,
) -> Result<String> {
    let refuse = |reason| Error::ContinueFinalMessage { field: field.name().to_owned(), reason };
    let message = messages.last_mut().and_then(Value::as_object_mut).ok_or(Error::EmptyConversation)?;
    let reasoning = REASONING.contains(&field.name());
    let read = template.contains(field.name()) || (reasoning && template.contains(REASONING[1]));
    if field != ContinueField::Content && !read {
        return Err(refuse("the template does not read it"));
    }
    let value = message.get_mut(field.name()).ok_or_else(|| refuse("the message has no such field"))?;
    let target = match value {
        Value::Array(parts) => parts.iter_mut().rev().find_map(|part| part.get_mut("text")),
        value => Some(value),
    };
    let Some(Value::String(text)) = target else { return Err(refuse("it has no text")) };
    let original = text.clone();
    text.push_str(TAG);
    let tagged = text.clone();
    for alias in REASONING.iter().filter(|_| reasoning) {
        if let Some(value) = message.get_mut(*alias).filter(|value| **value == *original) {
            *value = Value::String(tagged.clone());
        }
    }
    Ok(original)
}

/// Truncates a rendering at the marker, where the model continues.
pub(crate) fn cut_at_tag(prompt: &mut Prompt, text: &str, field: ContinueField<'_>) -> Result<()> {
    let refuse = |reason| Error::ContinueFinalMessage { field: field.name().to_owned(), reason };
    let rendered = prompt.text();
    if !rendered.contains(text.trim()) {
        return Err(refuse("its text is not in the rendering"));
    }
    let at = rendered.rfind(TAG.trim_end()).ok_or_else(|| refuse("its end is not in the rendering"))?;
    let end = if rendered[at..].starts_with(TAG) { at } else { rendered[..at].trim_end().len() };
    prompt.truncate(end);
    Ok(())
}
