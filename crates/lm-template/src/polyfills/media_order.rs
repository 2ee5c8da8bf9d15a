//! Order of the images and audio of a conversation, which polyfills may change.

use serde_json::{Map, Value};

/// Key of a medium's number while polyfills are applied.
const NUMBER: &str = "\0number";

/// Numbers the images and audio, if tool results have some: no other messages change places.
pub(super) fn number(messages: &mut [Value]) {
    if messages.iter().any(|message| message["role"] == "tool" && has_media(&message["content"])) {
        for (number, part) in media(messages).enumerate() {
            part.insert(NUMBER.to_owned(), number.into());
        }
    }
}

/// Removes the numbers, and returns them in their new order, if it is another one.
pub(super) fn take(messages: &mut [Value]) -> Option<Vec<usize>> {
    let numbers = media(messages).filter_map(|part| part.shift_remove(NUMBER)?.as_u64());
    let numbers: Vec<usize> = numbers.filter_map(|number| usize::try_from(number).ok()).collect();
    (!numbers.is_sorted()).then_some(numbers)
}

/// Type of a part that is an image or an audio clip.
pub(super) fn medium(part: &Value) -> Option<&str> {
    part["type"].as_str().filter(|kind| matches!(*kind, "image" | "audio"))
}

/// Returns true if a content has an image or an audio clip.
pub(super) fn has_media(content: &Value) -> bool {
    content.as_array().is_some_and(|parts| parts.iter().any(|part| medium(part).is_some()))
}

fn media(messages: &mut [Value]) -> impl Iterator<Item = &mut Map<String, Value>> {
    let contents = messages.iter_mut().filter_map(|message| message.get_mut("content")?.as_array_mut());
    contents.flatten().filter(|part| medium(part).is_some()).filter_map(Value::as_object_mut)
}
