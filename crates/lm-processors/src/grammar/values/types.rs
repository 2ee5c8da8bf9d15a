//! Types and listed values of a schema.

use lm_template::Value;

use super::Object;

/// The listed values of a schema, without those of other types.
pub(in crate::grammar) fn enum_values(schema: &Object) -> Option<Vec<Value>> {
    let listed = match (schema.get("const"), schema.get("enum")) {
        (Some(value), Some(Value::Array(values))) if !values.contains(value) => vec![],
        (Some(value), _) => vec![value.clone()],
        (None, Some(Value::Array(values))) => values.clone(),
        _ => return None,
    };
    let types = types_of(schema);
    Some(listed.into_iter().filter(|value| types.iter().any(|name| is_of(name, value))).collect())
}

fn is_of(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => {
            name == "number"
                || (name == "integer" && number.as_f64().is_some_and(|number| number.fract() == 0.0))
        }
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}

/// Types that a schema allows.
pub(in crate::grammar) fn types_of(schema: &Object) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            let wider = names.contains(&"number");
            names.into_iter().filter(|name| !(wider && *name == "integer")).collect()
        }
        _ => vec!["null", "boolean", "number", "string", "array", "object"],
    }
}
