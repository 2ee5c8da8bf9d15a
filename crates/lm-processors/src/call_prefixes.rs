//! Prefixes that mark the start of a reply as tool calls.

use serde_json::Value;

use crate::dialect::{CallBody, CallSyntax, Count, JsonCall, JsonKey, JsonObject, PythonCall, PythonList};

/// Prefixes of calls of these tools in `syntax`, as the family writes them: the marker, or for calls without
/// one, the text up to and including the tool's name. No answer of a given format starts with one.
pub(crate) fn call_prefixes<'a>(
    syntax: &CallSyntax,
    tools: impl IntoIterator<Item = &'a str>,
) -> Vec<String> {
    let marker = if syntax.section.open.is_empty() { syntax.call.open } else { syntax.section.open };
    let mut tools = tools.into_iter();
    if !marker.is_empty() {
        return tools.next().map(|_| marker.to_owned()).into_iter().collect();
    }
    tools.map(|tool| bare_prefix(&syntax.body, tool)).collect()
}

/// Prefixes that patterns and listed answers must not start with if these tools may be called: the call
/// prefixes, or only the bracket of a list or object without a marker. A lexer does not backtrack behind a
/// bracket.
pub(crate) fn reserved_prefixes<'a>(
    syntax: &CallSyntax,
    tools: impl IntoIterator<Item = &'a str>,
) -> Vec<String> {
    let bare = syntax.section.open.is_empty() && syntax.call.open.is_empty();
    let shorten = |text: String| match text.chars().next() {
        Some(bracket @ ('[' | '{')) if bare => bracket.to_string(),
        _ => text,
    };
    let mut openings: Vec<String> = call_prefixes(syntax, tools).into_iter().map(shorten).collect();
    openings.dedup();
    openings
}

fn bare_prefix(body: &CallBody, tool: &str) -> String {
    match body {
        CallBody::Json(json) => json_prefix(json, tool),
        CallBody::Python(PythonCall { list: PythonList::Brackets, .. }) => format!("[{tool}("),
        CallBody::Python(_) => format!("{tool}("),
        CallBody::Braces(braces) => format!("{}{tool}{{", braces.before_name),
        CallBody::Named(named) => format!("{}{tool}", named.before_name),
        CallBody::Parameters(call) => format!("{}{tool}{}", call.name.open, call.name.close),
    }
}

fn json_prefix(json: &JsonCall, tool: &str) -> String {
    let list = match json.count {
        Count::One => String::new(),
        Count::List { after_open, .. } => format!("[{after_open}"),
    };
    let name = Value::from(tool);
    match json.object {
        JsonObject::NameIsKey => format!("{list}{{{name}"),
        JsonObject::Keys { written: [(JsonKey::Name, key), ..], .. } => {
            format!("{list}{{\"{key}\"{}{name}", json.colon)
        }
        JsonObject::Keys { written, .. } => {
            let first = written.first().map_or("", |(_, key)| *key);
            format!("{list}{{\"{first}\"{}", json.colon)
        }
    }
}
