//! Documents and search results as text.

use lm_conversation::Part;
use serde_json::Value;

use super::content::{Block, parts};
use crate::error::{ApiError, Result};
use crate::fields::shown;
use crate::media;

/// Reads a `document` block: its title and context, then its text or its parts. Citations are not made.
pub(super) fn document(block: &mut Block) -> Result<Vec<Part>> {
    let head = lines(block, &["title", "context"]);
    let at = format!("{}.source", block.at);
    let mut source = block.fields.remove("source").unwrap_or_default();
    let body = match source["type"].as_str() {
        Some("text") => match source["data"].take() {
            Value::String(text) => vec![Part::Text(text)],
            other => return Err(ApiError::unexpected(format!("{at}.data"), shown(&other), "a string")),
        },
        Some("content") => parts(source["content"].take(), &format!("{at}.content"))?,
        Some(kind) => return Err(media::unsupported(&at, kind, "a source of text or content")),
        None => {
            let got = shown(&source["type"]);
            return Err(ApiError::unexpected(format!("{at}.type"), got, "\"text\" or \"content\""));
        }
    };
    Ok(with_head(head, body))
}

/// Reads a `search_result` block: its title and source, then its text.
pub(super) fn search_result(block: &mut Block) -> Result<Vec<Part>> {
    let head = lines(block, &["title", "source"]);
    let content = block.fields.remove("content").unwrap_or_default();
    Ok(with_head(head, parts(content, &format!("{}.content", block.at))?))
}

/// Texts of these fields, a line each.
fn lines(block: &Block, names: &[&str]) -> String {
    let texts = names.iter().filter_map(|name| block.fields.get(*name)?.as_str());
    texts.filter(|text| !text.is_empty()).map(|text| format!("{text}\n")).collect()
}

/// The parts below the head, which is part of the first text.
fn with_head(head: String, mut body: Vec<Part>) -> Vec<Part> {
    match body.first_mut() {
        _ if head.is_empty() => {}
        Some(Part::Text(text)) => text.insert_str(0, &format!("{head}\n")),
        _ => body.insert(0, Part::Text(head)),
    }
    body
}

/// A result that is no content of blocks, without the members that only Anthropic's servers read.
pub(super) fn data(mut value: Value) -> Value {
    strip(&mut value);
    value
}

fn strip(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::Object(members) => {
            members.retain(|name, value| {
                !(name.starts_with("encrypted_")
                    || name == "cache_control"
                    || name == "citations"
                    || value.is_null())
            });
            members.values_mut().for_each(strip);
        }
        _ => {}
    }
}

/// Returns true if a member of the value can be read by Anthropic's servers alone.
pub(super) fn is_opaque(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(is_opaque),
        Value::Object(members) => {
            members.iter().any(|(name, value)| name.starts_with("encrypted_") || is_opaque(value))
        }
        _ => false,
    }
}
