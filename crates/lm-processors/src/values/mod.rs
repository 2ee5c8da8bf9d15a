//! Values that are not written as JSON: their meaning, and their conversion to JSON text.

mod alternatives;
mod braces;
#[cfg(test)]
mod incremental;
mod number;
mod python;
mod python_string;
mod readings;
mod schema;
mod schema_cache;
mod typed;
mod written;

pub(crate) use alternatives::Alternative;
pub(crate) use braces::BraceArguments;
pub(crate) use python::{PythonArguments, python_literal};
pub(crate) use readings::Readings;
pub(crate) use schema::{Schema, Types};
pub(crate) use schema_cache::SchemaCache;
pub(crate) use typed::typed_value;
pub(crate) use written::{BraceKey, brace_key, in_braces, in_python};

/// Maximum nesting depth of values: below the limit of `serde_json`, and safe for the stack.
pub(crate) const MAX_DEPTH: usize = 100;

/// Appends one character of a string to JSON text.
pub(crate) fn push_json_char(out: &mut String, c: char) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
        c => out.push(c),
    }
}

/// Appends a piece of a string to JSON text.
pub(crate) fn push_json_chars(out: &mut String, text: &str) {
    text.chars().for_each(|c| push_json_char(out, c));
}

/// Appends a whole string, quotes included, to JSON text.
pub(crate) fn push_json_string(out: &mut String, text: &str) {
    out.push('"');
    push_json_chars(out, text);
    out.push('"');
}

/// Length of the longest suffix of `text` that is a proper prefix of `marker`.
pub(crate) fn partial(text: &str, marker: &str) -> usize {
    let longest = marker.len().saturating_sub(1).min(text.len());
    let begins = |len: &usize| {
        text.is_char_boundary(text.len() - len) && marker.starts_with(&text[text.len() - len..])
    };
    (1..=longest).rev().find(begins).unwrap_or(0)
}
