//! Results as the content of messages: bounded in bytes and in depth.

use crate::tool_error::ToolError;
use crate::truncation::truncated;
use lm_template::{Content, Map, Media, MediaSource, Part, Value};

/// Maximum depth of a result, as of JSON that is read.
const MAX_DEPTH: usize = 128;

/// Maximum number of images and audio clips of a result.
const MAX_MEDIA: usize = 32;

/// Content of a message: numbers and booleans become text, as in chat APIs; so do lists, which templates
/// would read as parts of a message, except those of text and media. A content of more than `max` bytes is
/// cut to a text, with a mark.
///
/// # Errors
/// When the value is nested too deep.
pub(super) fn content(value: Value, max: MaxBytes) -> Result<Value, ToolError> {
    let value = within_depth(value)?;
    if let Some(parts) = parts_with_media(&value) {
        return Ok(within(parts, max));
    }
    let max = max.text;
    Ok(match value {
        Value::String(text) => Value::String(truncated(text, max)),
        Value::Object(_) => cut(value, max),
        other => Value::String(truncated(other.to_string(), max)),
    })
}

/// Maximum bytes of a result: of its text, and of its images and audio together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaxBytes {
    pub text: usize,
    pub media: usize,
}

/// The parts of a list of text and media.
fn parts_with_media(value: &Value) -> Option<Vec<Part>> {
    // A copy of large data only if it has media.
    let is_medium = |item: &Value| matches!(item["type"].as_str(), Some("image" | "audio"));
    value.as_array().filter(|items| items.iter().any(is_medium))?;
    match Content::of_result(value.clone()) {
        Content::Parts(parts) => Some(parts),
        _ => None,
    }
}

/// Keeps the first media within the limits; the others become notes, and the text is cut.
fn within(parts: Vec<Part>, max: MaxBytes) -> Value {
    let (mut text_left, mut media_left, mut count) = (max.text, max.media, 0);
    let mut kept: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        let medium = match &part {
            Part::Image(Media { source: MediaSource::Blob(bytes), .. })
            | Part::Audio(Media { source: MediaSource::Blob(bytes), .. }) => Some(bytes.len()),
            _ => None,
        };
        if let Some(bytes) = medium.filter(|&bytes| bytes <= media_left && count < MAX_MEDIA) {
            (media_left, count) = (media_left - bytes, count + 1);
            kept.push(part);
            continue;
        }
        let too_much = format!("a result may have {MAX_MEDIA} media of {} bytes in all", max.media);
        let text = part.as_text().map(str::to_owned).or_else(|| part.note(Some(&too_much)));
        let text = text.filter(|_| text_left > 0).unwrap_or_default();
        let cut = truncated(text.clone(), text_left);
        text_left = text_left.saturating_sub(text.len());
        kept.push(Part::Text(cut));
    }
    kept.iter().map(Part::to_json).collect()
}

/// Report of a tool; one of more than `max` bytes is cut to a text. `None` if it is nested too deep.
pub(super) fn report(value: Value, max: usize) -> Option<Value> {
    within_depth(value).ok().map(|value| cut(value, max))
}

/// Drops a value, which may be nested deeper than a stack allows.
pub(super) fn discard(value: Value) {
    let mut values = vec![value];
    while let Some(value) = values.pop() {
        match value {
            Value::Array(items) => values.extend(items),
            Value::Object(members) => values.extend(members.into_iter().map(|(_, member)| member)),
            _ => {}
        }
    }
}

/// Returns true if arguments have at most as many levels as a result.
pub(crate) fn is_shallow(arguments: &Map<String, Value>) -> bool {
    arguments.values().all(|value| is_within(value, MAX_DEPTH - 1))
}

/// Message content from a hook: as from a tool, but a list of message parts is kept.
pub(crate) fn given(value: Value) -> Value {
    match value {
        Value::Array(items) if is_parts(&items) => Value::Array(items),
        Value::String(_) | Value::Object(_) | Value::Null => value,
        other => Value::String(other.to_string()),
    }
}

fn is_parts(items: &[Value]) -> bool {
    !items.is_empty() && items.iter().all(|item| item["type"].is_string())
}

fn within_depth(value: Value) -> Result<Value, ToolError> {
    if is_within(&value, MAX_DEPTH) {
        return Ok(value);
    }
    discard(value);
    Err(ToolError::failed(format_args!("the result is nested deeper than {MAX_DEPTH} levels")))
}

/// Returns true if the nesting of a value is within the limit.
fn is_within(value: &Value, levels: usize) -> bool {
    let Some(inside) = levels.checked_sub(1) else { return false };
    match value {
        Value::Array(items) => items.iter().all(|item| is_within(item, inside)),
        Value::Object(members) => members.values().all(|member| is_within(member, inside)),
        _ => true,
    }
}

/// Keeps a value whose JSON has at most `max` bytes.
fn cut(value: Value, max: usize) -> Value {
    let text = match &value {
        Value::String(text) if text.len() <= max => return value,
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.len() <= max { value } else { Value::String(truncated(text, max)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const fn of_text(text: usize) -> MaxBytes {
        MaxBytes { text, media: 0 }
    }

    #[test]
    fn lists_of_text_and_media_stay_lists_within_their_limits() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let image = json!({"type": "image", "blob": "AAECAw==", "mime_type": "image/png"});
        let audio = json!({"type": "audio", "blob": "AAEC"});
        let list = json!([text("añb"), image, audio]);
        let max = |text, media| MaxBytes { text, media };
        assert_eq!(content(list.clone(), max(9, 7)), Ok(list.clone()));
        let noted = content(list.clone(), max(200, 4)).expect("a content");
        assert_eq!(noted[1], image);
        let note = "[audio: unknown type, 3 bytes, not shown: a result may have 32 media of 4 bytes in all]";
        assert_eq!(noted[2], text(note));
        let cut = content(list, max(2, 7)).expect("a content");
        assert_eq!((&cut[0], &cut[2]), (&text("a\n[cut: 1 of 4 bytes]"), &audio));
        let many = Value::Array(vec![image; 40]);
        let shown = content(many, max(9, 1000)).expect("a content");
        assert_eq!(
            shown.as_array().expect("a list").iter().filter(|part| part["type"] == "image").count(),
            32
        );
    }

    #[test]
    fn lists_that_are_no_parts_are_json_text() {
        let broken = json!([{"type": "image", "blob": "no base64!"}]);
        let path = json!([{"type": "image", "path": "/etc/passwd"}]);
        let data = json!([{"type": "image", "blob": "AAEC", "size": 3}]);
        for list in [broken, path, data, json!([{"type": "text", "text": "a"}])] {
            assert_eq!(content(list.clone(), of_text(1000)), Ok(json!(list.to_string())));
        }
    }

    #[test]
    fn contents_are_cut_at_character_boundaries() {
        let cases = [
            (json!("añb"), 4, json!("añb")),
            (json!("añb"), 2, json!("a\n[cut: 1 of 4 bytes]")),
            (json!("😀"), 3, json!("\n[cut: 0 of 4 bytes]")),
            (json!(""), 0, json!("")),
            (json!({"k": "é"}), 10, json!({"k": "é"})),
            (json!({"k": "é"}), 9, json!("{\"k\":\"é\"\n[cut: 9 of 10 bytes]")),
            (json!({"k": "é"}), 7, json!("{\"k\":\"\n[cut: 6 of 10 bytes]")),
            (json!(["é", 1]), 8, json!("[\"é\",1]")),
            (json!(["é", 1]), 3, json!("[\"\n[cut: 2 of 8 bytes]")),
            (json!(1234), 2, json!("12\n[cut: 2 of 4 bytes]")),
            (json!(f64::NAN), 9, json!("null")),
            (json!(true), 4, json!("true")),
        ];
        for (value, max, expected) in cases {
            assert_eq!(content(value.clone(), of_text(max)), Ok(expected), "{value} within {max}");
        }
    }

    #[test]
    fn hook_value_is_text_unless_it_has_parts() {
        let parts = json!([{"type": "text", "text": "a"}, {"type": "image"}]);
        for same in [json!("a"), json!({"a": 1}), json!(null), parts] {
            assert_eq!(given(same.clone()), same);
        }
        for (value, text) in
            [(json!(4), "4"), (json!(true), "true"), (json!([]), "[]"), (json!([{"a": 1}]), "[{\"a\":1}]")]
        {
            assert_eq!(given(value), json!(text));
        }
    }

    #[test]
    fn overly_deep_values_are_rejected() {
        let deep = |levels| (0..levels).fold(Value::Null, |value, _| Value::Array(vec![value]));
        assert!(content(deep(127), of_text(1000)).is_ok());
        for levels in [128, 200_000] {
            let error = content(deep(levels), of_text(1000)).expect_err("too deep").to_string();
            assert!(error.contains("deeper than 128 levels"), "{error}");
            assert_eq!(report(deep(levels), 1000), None);
        }
    }
}
