//! The conversation that polyfills change.

use serde_json::{Map, Value};

/// Input of the template.
pub(super) struct TemplateInput {
    pub(super) messages: Vec<Value>,
    pub(super) tools: Value,
    pub(super) extra_context: Map<String, Value>,
    /// Roles of the messages that the template does not show, besides `developer`.
    pub(super) unread_roles: Vec<String>,
}

impl TemplateInput {
    /// Returns true if a tool is declared.
    pub(super) fn has_tools(&self) -> bool {
        self.tools.as_array().is_some_and(|tools| !tools.is_empty())
    }

    /// Applies `change` to every message; returns true if one changed.
    pub(super) fn each(&mut self, mut change: impl FnMut(&mut Map<String, Value>) -> bool) -> bool {
        let messages = self.messages.iter_mut().filter_map(Value::as_object_mut);
        messages.fold(false, |changed, message| change(message) | changed)
    }

    /// Applies `change` to every tool call; returns true if one changed.
    pub(super) fn each_call(&mut self, mut change: impl FnMut(&mut Value) -> bool) -> bool {
        self.each(|message| {
            let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
            calls.into_iter().flatten().fold(false, |changed, call| change(call) | changed)
        })
    }

    /// Removes messages and prepends their texts to the next user message; if the next message, besides tool
    /// results, is not the user's, inserts a user message with them.
    pub(super) fn fold_into_user(
        &mut self,
        mut text_of: impl FnMut(&Map<String, Value>) -> Option<String>,
    ) -> bool {
        let mut pending: Vec<String> = Vec::new();
        let mut folded = false;
        let mut messages = Vec::with_capacity(self.messages.len());
        for mut message in self.messages.drain(..) {
            if let Some(text) = message.as_object().and_then(&mut text_of) {
                folded = true;
                pending.push(text);
                continue;
            }
            if !pending.is_empty() && message["role"] != "tool" {
                let text = std::mem::take(&mut pending).join("\n\n");
                match message.as_object_mut().filter(|message| role(message) == "user") {
                    Some(user) => prepend(user, text),
                    None => messages.push(user(text)),
                }
            }
            messages.push(message);
        }
        if !pending.is_empty() {
            messages.push(user(pending.join("\n\n")));
        }
        self.messages = messages;
        folded
    }
}

pub(super) fn role(message: &Map<String, Value>) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}

/// Returns true for instructions: messages of the roles `system` and `developer`.
pub(super) fn is_instruction(message: &Map<String, Value>) -> bool {
    matches!(role(message), "system" | "developer")
}

/// Returns true if the message has tool calls.
pub(super) fn has_calls(message: &Map<String, Value>) -> bool {
    message.get("tool_calls").and_then(Value::as_array).is_some_and(|calls| !calls.is_empty())
}

/// The text of a message's content, or of its parts, joined.
pub(super) fn text(message: &Map<String, Value>) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str())).collect()
        }
        _ => String::new(),
    }
}

fn user(text: String) -> Value {
    serde_json::json!({"role": "user", "content": text})
}

/// Joins two contents with an empty line: as text if both are, otherwise as parts.
pub(super) fn join_contents(first: Value, second: Value) -> Value {
    let is_empty = |content: &Value| content.is_null() || *content == "" || *content == serde_json::json!([]);
    match (first, second) {
        (first, second) if is_empty(&first) => second,
        (first, second) if is_empty(&second) => first,
        (Value::String(first), Value::String(second)) => format!("{first}\n\n{second}").into(),
        (first, second) => [parts(first), vec![text_part("\n\n")], parts(second)].concat().into(),
    }
}

fn parts(content: Value) -> Vec<Value> {
    match content {
        Value::Array(parts) => parts,
        Value::String(text) => vec![text_part(&text)],
        other => vec![other],
    }
}

pub(super) fn text_part(text: &str) -> Value {
    serde_json::json!({"type": "text", "text": text})
}

/// Prepends a text to a message's content.
pub(super) fn prepend(message: &mut Map<String, Value>, text: String) {
    join(
        message,
        text,
        |content, text| if content.is_empty() { text } else { format!("{text}\n\n{content}") },
        0,
    );
}

/// Appends a text to a message's content.
pub(super) fn append(message: &mut Map<String, Value>, text: String, separator: &str) {
    let end = usize::MAX;
    join(
        message,
        text,
        |content, text| if content.is_empty() { text } else { format!("{content}{separator}{text}") },
        end,
    );
}

fn join(
    message: &mut Map<String, Value>,
    text: String,
    joined: impl Fn(&str, String) -> String,
    place: usize,
) {
    match message.get_mut("content") {
        Some(Value::Array(parts)) => {
            parts.insert(place.min(parts.len()), text_part(&text));
        }
        Some(Value::String(content)) => *content = joined(content, text),
        _ => drop(message.insert("content".to_owned(), text.into())),
    }
}
