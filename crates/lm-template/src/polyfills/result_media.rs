//! Images and audio of tool results.

use serde_json::{Map, Value, json};

use super::media_order::medium;
use super::role::ShownResults;
use super::template_input::{TemplateInput, join_contents, text, text_part};
use crate::capabilities::Capabilities;

/// Moves media that the template does not show in a result to the user message after the results.
pub(super) fn in_user_message(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    let mut shown = ShownResults::new(capabilities);
    let (mut moved, mut pending) = (false, Vec::new());
    let mut messages = Vec::with_capacity(input.messages.len() + 1);
    for mut message in input.messages.drain(..) {
        match message.as_object_mut().map(|fields| (shown.next(fields), fields)) {
            Some((Some(is_shown), fields)) => {
                moved |= take_media(fields, is_shown.then_some(capabilities), &mut pending);
            }
            _ if pending.is_empty() => {}
            _ => {
                let media = Value::Array(std::mem::take(&mut pending));
                if message["role"] == "user" {
                    message["content"] = join_contents(media, message["content"].take());
                } else {
                    messages.push(json!({"role": "user", "content": media}));
                }
            }
        }
        messages.push(message);
    }
    if !pending.is_empty() {
        messages.push(json!({"role": "user", "content": pending}));
    }
    input.messages = messages;
    moved
}

/// Replaces the media of a result that are not shown in it by their names, and adds them to `pending`.
/// Returns true if there are any.
fn take_media(
    result: &mut Map<String, Value>,
    shown: Option<&Capabilities>,
    pending: &mut Vec<Value>,
) -> bool {
    let is_shown = |kind: &str| {
        shown.is_some_and(|shown| if kind == "image" { shown.result_images } else { shown.result_audio })
    };
    let before = pending.len();
    let Some(Value::Array(parts)) = result.get_mut("content") else { return false };
    for part in parts.iter_mut() {
        let Some(kind) = medium(part).filter(|kind| !is_shown(kind)) else { continue };
        let name = format!("{kind} {}", pending.len() / 2 + 1);
        let named = text_part(&format!("[{name}, shown below]"));
        let gap = if pending.is_empty() { "" } else { "\n" };
        pending.push(text_part(&format!("{gap}[{name}]\n")));
        pending.push(std::mem::replace(part, named));
    }
    let moved = pending.len() > before;
    if moved && parts.iter().all(|part| part["type"] == "text") {
        let joined = text(result);
        result.insert("content".to_owned(), joined.into());
    }
    moved
}
