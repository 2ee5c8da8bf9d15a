//! Whether no value fits two schemas: then `oneOf` is `anyOf`.

use std::collections::BTreeSet;

use lm_template::Value;
use serde_json::Map;

/// How deep two schemas are compared.
const MAX_DEPTH: usize = 6;
/// How many branches are compared pair by pair.
const MAX_BRANCHES: usize = 64;

/// Whether no value fits two of `schemas`, as far as types, constants and required properties show it. References lead into
/// `definitions`; one that is not there yet shows nothing.
pub(super) fn all_disjoint(schemas: &[Value], definitions: &Map<String, Value>) -> bool {
    let pairs = || {
        schemas
            .iter()
            .enumerate()
            .flat_map(|(at, one)| schemas[at + 1..].iter().map(move |other| (one, other)))
    };
    schemas.len() <= MAX_BRANCHES && pairs().all(|(one, other)| disjoint(one, other, definitions, 0))
}

fn disjoint(one: &Value, other: &Value, definitions: &Map<String, Value>, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    let (one, other) = match (resolved(one, definitions), resolved(other, definitions)) {
        (Some(one), Some(other)) => (one, other),
        _ => return false,
    };
    let (Value::Object(one), Value::Object(other)) = (one, other) else {
        return one == &Value::Bool(false) || other == &Value::Bool(false);
    };
    for (a, b) in [(one, other), (other, one)] {
        if let Some(Value::Array(options)) = a.get("anyOf") {
            let b = Value::Object(b.clone());
            if options.iter().all(|option| disjoint(option, &b, definitions, depth + 1)) {
                return true;
            }
        }
    }
    match (values(one), values(other)) {
        (Some(these), Some(those)) => these.iter().all(|value| !those.contains(value)),
        (Some(these), None) => these.iter().all(|value| !types(other).contains(type_of(value))),
        (None, Some(those)) => those.iter().all(|value| !types(one).contains(type_of(value))),
        (None, None) => {
            let (these, those) = (types(one), types(other));
            let common: Vec<_> = these.intersection(&those).copied().collect();
            common.is_empty() || (common == ["object"] && objects_disjoint(one, other, definitions, depth))
        }
    }
}

fn objects_disjoint(
    one: &Map<String, Value>,
    other: &Map<String, Value>,
    definitions: &Map<String, Value>,
    depth: usize,
) -> bool {
    let required = |schema: &Map<String, Value>| -> Vec<String> {
        let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        names.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    required(one)
        .into_iter()
        .chain(required(other))
        .any(|name| disjoint(property(one, &name), property(other, &name), definitions, depth + 1))
}

fn property<'a>(schema: &'a Map<String, Value>, name: &str) -> &'a Value {
    const ANY: &Value = &Value::Bool(true);
    let listed = schema.get("properties").and_then(|properties| properties.get(name));
    let others =
        if schema.contains_key("patternProperties") { None } else { schema.get("additionalProperties") };
    listed.or(others).unwrap_or(ANY)
}

fn resolved<'a>(schema: &'a Value, definitions: &'a Map<String, Value>) -> Option<&'a Value> {
    let mut schema = schema;
    for _ in 0..MAX_DEPTH {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { return Some(schema) };
        schema = definitions.get(reference.strip_prefix("#/$defs/")?)?;
    }
    None
}

fn values(schema: &Map<String, Value>) -> Option<Vec<&Value>> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => Some(vec![value]),
        (None, Some(Value::Array(values))) => Some(values.iter().collect()),
        _ => None,
    }
}

fn types(schema: &Map<String, Value>) -> BTreeSet<&str> {
    let names: Vec<&str> = match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => vec!["array", "boolean", "null", "number", "object", "string"],
    };
    names.into_iter().map(|name| if name == "integer" { "number" } else { name }).collect()
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
