//! Parts of the assistant's content that are its reasoning.

use serde_json::Value;

/// Types of parts that are reasoning, and of those whose text is encrypted.
const TYPES: [&str; 5] =
    ["thinking", "reasoning", "reasoning_text", "redacted_thinking", "encrypted_reasoning"];

/// Keys of the text, in the order of precedence.
const KEYS: [&str; 5] = ["thinking", "reasoning", "text", "content", "summary"];

/// Returns true for a part of a content that is reasoning.
///
/// ```
/// use serde_json::json;
///
/// assert!(lm_template::is_reasoning_part(&json!({"type": "thinking", "thinking": "Hm."})));
/// assert!(!lm_template::is_reasoning_part(&json!({"type": "text", "text": "Hm."})));
/// ```
pub fn is_reasoning_part(part: &Value) -> bool {
    part["type"].as_str().is_some_and(|kind| TYPES.contains(&kind))
}

/// Takes the reasoning out of a list of parts; `None` if there is none. A content without other parts becomes
/// null.
pub(crate) fn take(content: &mut Value) -> Option<String> {
    let reasoning = match content {
        Value::Array(parts) => {
            let (reasoning, others) = std::mem::take(parts).into_iter().partition(is_reasoning_part);
            *parts = others;
            reasoning
        }
        Value::Object(_) if is_reasoning_part(content) => vec![content.take()],
        _ => Vec::new(),
    };
    if !reasoning.is_empty() && content.as_array().is_some_and(Vec::is_empty) {
        *content = Value::Null;
    }
    let texts: Vec<String> = reasoning.iter().map(text).filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// Text of a part: a string, or a list of parts with text.
fn text(part: &Value) -> String {
    let text = KEYS.into_iter().find_map(|key| part.get(key).filter(|value| !value.is_null()));
    match text {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.as_str().or_else(|| part["text"].as_str())).collect()
        }
        _ => String::new(),
    }
}
