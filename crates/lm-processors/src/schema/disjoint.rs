//! Disjointness of schemas: if no value matches two of them, `oneOf` is `anyOf`.

use std::collections::BTreeSet;

use lm_template::Value;

use super::node::Object;
use super::parts::{definition, list, property, required, type_names};
use super::type_of;

/// Maximum depth of the comparison.
const MAX_DEPTH: usize = 6;
/// Maximum number of compared pairs of schemas.
const MAX_PAIRS: usize = 100_000;

/// Returns true if no value matches two of `schemas`, as far as types, constants and required properties
/// show. References point into `definitions`; an undefined one is treated as unknown.
pub(super) fn all_disjoint(schemas: &[Value], definitions: &Object) -> bool {
    let mut comparison = Comparison { definitions, pairs_left: MAX_PAIRS };
    let rest = |at: usize| schemas.iter().skip(at + 1);
    schemas.iter().enumerate().all(|(at, one)| rest(at).all(|other| comparison.disjoint(one, other, 0)))
}

struct Comparison<'a> {
    definitions: &'a Object,
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
            if let Some(options) = list(these, "anyOf")
                && options.iter().all(|option| self.disjoint(option, other, depth + 1))
            {
                return true;
            }
        }
        match (list(a, "enum"), list(b, "enum")) {
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
    fn objects_disjoint(&mut self, one: &Object, other: &Object, depth: usize) -> bool {
        let mut names = required(one).chain(required(other));
        names.any(|name| self.disjoint(allowed(one, name), allowed(other, name), depth + 1))
    }
}

fn allowed<'a>(schema: &'a Object, name: &str) -> &'a Value {
    const ANY: &Value = &Value::Bool(true);
    property(schema, name).unwrap_or(ANY)
}

fn resolved<'a>(schema: &'a Value, definitions: &'a Object) -> Option<&'a Value> {
    let mut schema = schema;
    for _ in 0..MAX_DEPTH {
        let Some(name) = schema.as_object().and_then(definition) else { return Some(schema) };
        schema = definitions.get(name)?;
    }
    None
}

fn types(schema: &Object) -> BTreeSet<&str> {
    let names = type_names(schema);
    let names = names.unwrap_or_else(|| vec!["array", "boolean", "null", "number", "object", "string"]);
    names.into_iter().map(|name| if name == "integer" { "number" } else { name }).collect()
}
