//! Disjointness of schemas: if no value matches two of them, `oneOf` is `anyOf`.

use std::collections::BTreeSet;

use lm_template::Value;
use serde_json::Map;

use super::type_of;

/// Maximum depth of the comparison.
const MAX_DEPTH: usize = 6;
/// Maximum number of compared pairs of schemas.
const MAX_PAIRS: usize = 100_000;

/// Returns true if no value matches two of `schemas`, as far as types, constants and required properties
/// show. References point into `definitions`; an undefined one is treated as unknown.
pub(super) fn all_disjoint(schemas: &[Value], definitions: &Map<String, Value>) -> bool {
    let mut comparison = Comparison { definitions, pairs_left: MAX_PAIRS };
    let rest = |at: usize| schemas.iter().skip(at + 1);
    schemas.iter().enumerate().all(|(at, one)| rest(at).all(|other| comparison.disjoint(one, other, 0)))
}

struct Comparison<'a> {
    definitions: &'a Map<String, Value>,
    pairs_left: usize,
}

impl Comparison<'_> {
    fn disjoint(&mut self, one: &Value, other: &Value, depth: usize) -> bool {
        if depth > MAX_DEPTH || self.pairs_left == 0 {
            return false;
        }
        self.pairs_left -= 1;
        let (Some(one), Some(other)) = (resolved(one, self.definitions), resolved(other, self.definitions))
        else {
            return false;
        };
        let (Value::Object(a), Value::Object(b)) = (one, other) else {
            return one == &Value::Bool(false) || other == &Value::Bool(false);
        };
        for (these, other) in [(a, other), (b, one)] {
            if let Some(Value::Array(options)) = these.get("anyOf")
                && options.iter().all(|option| self.disjoint(option, other, depth + 1))
            {
                return true;
            }
        }
        match (values(a), values(b)) {
            (Some(these), Some(those)) => these.iter().all(|value| !those.contains(value)),
            (Some(these), None) => these.iter().all(|value| !types(b).contains(type_of(value))),
            (None, Some(those)) => those.iter().all(|value| !types(a).contains(type_of(value))),
            (None, None) => {
                let common: Vec<_> = types(a).intersection(&types(b)).copied().collect();
                common.is_empty() || (common == ["object"] && self.objects_disjoint(a, b, depth))
            }
        }
    }

    /// Returns true if a property that one of them requires has no value that both allow.
    fn objects_disjoint(
        &mut self,
        one: &Map<String, Value>,
        other: &Map<String, Value>,
        depth: usize,
    ) -> bool {
        let names = [one, other].map(|schema| schema.get("required").and_then(Value::as_array));
        let names: Vec<&str> = names.into_iter().flatten().flatten().filter_map(Value::as_str).collect();
        names.into_iter().any(|name| self.disjoint(property(one, name), property(other, name), depth + 1))
    }
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
