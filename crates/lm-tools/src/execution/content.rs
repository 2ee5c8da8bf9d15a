//! Results as the content of messages: bounded in bytes and in depth.

use crate::tool_error::ToolError;
use crate::truncation::truncated;
use lm_template::{Map, Value};

/// Maximum depth of a result, as of JSON that is read.
const MAX_DEPTH: usize = 128;

/// Content of a message: numbers and booleans become text, as in chat APIs; so do lists, which templates
/// would read as parts of a message. A content of more than `max` bytes is cut to a text, with a mark.
///
/// # Errors
/// When the value is nested too deep.
pub(super) fn content(value: Value, max: usize) -> Result<Value, ToolError> {
    let value = within_depth(value)?;
    Ok(match value {
        Value::String(text) => Value::String(truncated(text, max)),
        Value::Object(_) => cut(value, max),
        other => Value::String(truncated(other.to_string(), max)),
    })
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
            assert_eq!(content(value.clone(), max), Ok(expected), "{value} within {max}");
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
        assert!(content(deep(127), 1000).is_ok());
        for levels in [128, 200_000] {
            let error = content(deep(levels), 1000).expect_err("too deep").to_string();
            assert!(error.contains("deeper than 128 levels"), "{error}");
            assert_eq!(report(deep(levels), 1000), None);
        }
    }
}
