//! Why a grammar does not compile, as an error with fields.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{Error, GrammarErrorKind};

/// Most parts of a schema that are compiled on their own to find the one at fault.
const MAX_TRIES: usize = 200;
/// Time after which no further part is tried.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Keywords under which schemas stand by name, in a list, or alone.
const BY_NAME: &[&str] = &["properties", "patternProperties", "$defs", "definitions"];
const LISTS: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems", "items"];
const SINGLE: &[&str] = &["items", "additionalItems", "additionalProperties"];

/// What the library's messages say about keywords that it has no grammar for.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("oneOf constraints are not supported", "oneOf"),
    ("Unknown format", "format"),
    ("patternProperty", "patternProperties"),
    ("min/maxProperties", "minProperties"),
];
/// What they say when a bound was reached.
const TOO_LARGE: &[&str] =
    &["too big", "too large", "too many", "fuel", "limit", "level exceeded", "Unable to determine if regex"];

/// The error for a Lark grammar, a regular expression or a choice.
pub(super) fn of_grammar(message: String) -> Error {
    let kind = match is_any(&message, TOO_LARGE) {
        true => GrammarErrorKind::TooLarge,
        false => GrammarErrorKind::InvalidGrammar,
    };
    Error::Grammar { kind, path: None, keyword: None, message }
}

/// The error for a schema. `try_schema` says why a schema does not compile.
pub(super) fn of_schema(
    schema: &Value,
    message: String,
    try_schema: &dyn Fn(Value) -> Option<String>,
) -> Error {
    let (kind, keyword) = classify(&message);
    let mut search =
        Search { schema, message: &message, try_schema, tries: MAX_TRIES, until: Instant::now() + MAX_TIME };
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

/// The first text between two `quote`s.
fn quoted(text: &str, quote: char) -> Option<String> {
    text.split(quote).nth(1).map(str::to_owned)
}

/// Looks for the innermost part of a schema that does not compile for the same reason.
struct Search<'a> {
    schema: &'a Value,
    message: &'a str,
    try_schema: &'a dyn Fn(Value) -> Option<String>,
    tries: usize,
    until: Instant,
}

impl Search<'_> {
    /// JSON pointer of the part at fault in `part`, which stands at `path` and is at fault as a whole.
    fn innermost(&mut self, part: &Value, path: String) -> String {
        for (pointer, child) in parts(part) {
            if self.tries == 0 || Instant::now() >= self.until {
                break;
            }
            self.tries -= 1;
            let reason = (self.try_schema)(self.with_definitions(child));
            // A part compiles alone up to what it refers to; then the message says more or something else.
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

/// The schemas directly inside `schema`, each with its pointer from there.
fn parts(schema: &Value) -> Vec<(String, &Value)> {
    let Some(fields) = schema.as_object() else { return Vec::new() };
    let mut parts = Vec::new();
    for (name, value) in fields {
        match value {
            Value::Object(schemas) if BY_NAME.contains(&name.as_str()) => {
                parts.extend(schemas.iter().map(|(key, part)| (format!("/{name}/{}", escaped(key)), part)));
            }
            Value::Array(schemas) if LISTS.contains(&name.as_str()) => {
                parts.extend(schemas.iter().enumerate().map(|(at, part)| (format!("/{name}/{at}"), part)));
            }
            Value::Object(_) if SINGLE.contains(&name.as_str()) => parts.push((format!("/{name}"), value)),
            _ => {}
        }
    }
    parts
}

/// A key as JSON pointers write it.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
