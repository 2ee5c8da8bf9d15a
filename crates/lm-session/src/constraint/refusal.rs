//! Typed errors for grammars that do not compile.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{Error, GrammarErrorKind};

/// Maximum number of subschemas that are compiled on their own to locate the defect.
const MAX_TRIES: usize = 200;
/// Time after which no further subschema is tried.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Keywords that hold schemas by name, in a list, or alone.
const SUBSCHEMA_MAPS: &[&str] = &["properties", "patternProperties", "$defs", "definitions"];
const SUBSCHEMA_LISTS: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems", "items"];
const SINGLE_SUBSCHEMAS: &[&str] = &["items", "additionalItems", "additionalProperties"];

/// Parts of the library's messages for keywords without a grammar, and the keyword.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("oneOf constraints are not supported", "oneOf"),
    ("Unknown format", "format"),
    ("patternProperty", "patternProperties"),
    ("min/maxProperties", "minProperties"),
];
/// Parts of the messages for an exceeded limit.
const TOO_LARGE: &[&str] =
    &["too big", "too large", "too many", "fuel", "limit", "level exceeded", "Unable to determine if regex"];

/// Creates the error for a Lark grammar, a regular expression or a choice.
pub(super) fn grammar_error(message: String) -> Error {
    let kind = match is_any(&message, TOO_LARGE) {
        true => GrammarErrorKind::TooLarge,
        false => GrammarErrorKind::InvalidGrammar,
    };
    Error::Grammar { kind, path: None, keyword: None, message }
}

/// Creates the error for a schema. `try_schema` returns the message if a schema does not compile.
pub(super) fn schema_error(
    schema: &Value,
    message: String,
    try_schema: &dyn Fn(Value) -> Option<String>,
) -> Error {
    let (kind, keyword) = classify(&message);
    let mut search = DefectSearch {
        schema,
        message: &message,
        try_schema,
        tries: MAX_TRIES,
        deadline: Instant::now() + MAX_TIME,
    };
    let path = search.innermost(schema, String::new());
    Error::Grammar { kind, path: Some(path), keyword, message }
}

fn classify(message: &str) -> (GrammarErrorKind, Option<String>) {
    if let Some(keys) = message.split_once("Unimplemented keys: ").map(|(_, keys)| keys) {
        return (GrammarErrorKind::UnsupportedKeyword, quoted(keys, '"'));
    }
    if let Some((_, keyword)) = UNSUPPORTED.iter().find(|(text, _)| message.contains(text)) {
        return (GrammarErrorKind::UnsupportedKeyword, Some((*keyword).to_owned()));
    }
    match is_any(message, TOO_LARGE) {
        true => (GrammarErrorKind::TooLarge, None),
        false => (GrammarErrorKind::InvalidSchema, quoted(message, '\'')),
    }
}

fn is_any(message: &str, texts: &[&str]) -> bool {
    texts.iter().any(|text| message.contains(text))
}

/// First text between two `quote`s.
fn quoted(text: &str, quote: char) -> Option<String> {
    text.split(quote).nth(1).map(str::to_owned)
}

/// Search for the innermost subschema that does not compile for the same reason.
struct DefectSearch<'a> {
    schema: &'a Value,
    message: &'a str,
    try_schema: &'a dyn Fn(Value) -> Option<String>,
    tries: usize,
    deadline: Instant,
}

impl DefectSearch<'_> {
    /// Returns the JSON pointer of the innermost defective schema in `part`, which is at `path` and defective as a whole.
    fn innermost(&mut self, part: &Value, path: String) -> String {
        for (pointer, child) in parts(part) {
            if self.tries == 0 || Instant::now() >= self.deadline {
                break;
            }
            self.tries -= 1;
            let reason = (self.try_schema)(self.with_definitions(child));
            // A part whose references do not resolve fails with another or a longer message.
            if reason.is_some_and(|reason| reason.lines().next() == self.message.lines().next()) {
                return self.innermost(child, path + &pointer);
            }
        }
        path
    }

    fn with_definitions(&self, part: &Value) -> Value {
        let mut part = part.clone();
        if let (Value::Object(fields), Value::Object(whole)) = (&mut part, self.schema) {
            for name in ["$defs", "definitions", "$schema"] {
                if let Some(definitions) = whole.get(name).filter(|_| !fields.contains_key(name)) {
                    fields.insert(name.to_owned(), definitions.clone());
                }
            }
        }
        part
    }
}

/// Direct subschemas of `schema`, each with its relative JSON pointer.
fn parts(schema: &Value) -> Vec<(String, &Value)> {
    let Some(fields) = schema.as_object() else { return Vec::new() };
    let mut parts = Vec::new();
    for (name, value) in fields {
        match value {
            Value::Object(schemas) if SUBSCHEMA_MAPS.contains(&name.as_str()) => {
                parts.extend(schemas.iter().map(|(key, part)| (format!("/{name}/{}", escaped(key)), part)));
            }
            Value::Array(schemas) if SUBSCHEMA_LISTS.contains(&name.as_str()) => {
                parts.extend(schemas.iter().enumerate().map(|(at, part)| (format!("/{name}/{at}"), part)));
            }
            Value::Object(_) if SINGLE_SUBSCHEMAS.contains(&name.as_str()) => {
                parts.push((format!("/{name}"), value))
            }
            _ => {}
        }
    }
    parts
}

/// Escapes a key for a JSON pointer.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
