//! Types and listed values of a schema.

use lm_template::Value;

use super::Object;
use crate::schema::{listed, type_names, type_of};

/// The listed values of a schema, without those of other types.
pub(in crate::grammar) fn enum_values(schema: &Object) -> Option<Vec<Value>> {
    let types = types_of(schema);
    let is_allowed = |value: &Value| types.iter().any(|name| is_of(name, value));
    Some(listed(schema)?.into_iter().filter(is_allowed).collect())
}

fn is_of(name: &str, value: &Value) -> bool {
    let is_whole = || value.as_f64().is_some_and(|number| number.fract() == 0.0);
    name == type_of(value) || name == "integer" && is_whole()
}

/// Types that a schema allows.
pub(in crate::grammar) fn types_of(schema: &Object) -> Vec<&str> {
    let names = type_names(schema);
    let mut names = names.unwrap_or_else(|| vec!["null", "boolean", "number", "string", "array", "object"]);
    let wider = names.contains(&"number");
    names.retain(|name| !(wider && *name == "integer"));
    names
}
