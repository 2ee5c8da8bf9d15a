//! Combinations (`allOf`, `anyOf`) as a flat list of alternatives.

use lm_template::Value;
use serde_json::json;

use super::Object;
use crate::schema::{definition, names_of_types, same_value, validator};

/// Maximum number of references followed in place.
const MAX_DEPTH: usize = 12;
/// Maximum number of alternatives of a union.
const MAX_BRANCHES: usize = 1_000;
/// Maximum number of alternatives of an intersection of unions.
const MAX_PRODUCT: usize = 256;
/// Maximum number of schemas merged in a combination.
const MAX_STEPS: usize = 20_000;

/// Expands `schema` to alternatives without combinations; `None` if they cannot be expressed as plain
/// schemas.
pub(super) fn merged(schema: &Object, definitions: &Object) -> Option<Vec<Object>> {
    let mut found = Merge { definitions, steps_left: MAX_STEPS }.expand(schema, 0, true)?;
    found.retain_mut(|schema| filter_enum(schema, definitions));
    Some(found)
}

/// Keeps only the listed values that match all of a merged schema. Returns false if none is left.
fn filter_enum(schema: &mut Object, definitions: &Object) -> bool {
    let Some(Value::Array(mut values)) = schema.get("enum").cloned() else { return true };
    if schema.len() > 1 {
        let mut document = schema.clone();
        document.insert("$defs".to_owned(), Value::Object(definitions.clone()));
        // A schema that the validator rejects restricts nothing here: finished values are validated by the
        // original.
        if let Ok(validator) = validator(&Value::Object(document), true) {
            values.retain(|value| validator.is_valid(value));
        }
    }
    let any = !values.is_empty();
    schema.clear();
    schema.insert("enum".to_owned(), Value::Array(values));
    any
}

struct Merge<'a> {
    definitions: &'a Object,
    steps_left: usize,
}

impl Merge<'_> {
    /// Expands a schema; an `alone` one, which is not merged with others, may keep references as
    /// alternatives.
    fn expand(&mut self, schema: &Object, depth: usize, alone: bool) -> Option<Vec<Object>> {
        if depth > MAX_DEPTH {
            return None;
        }
        if let Some(name) = definition(schema) {
            let target = self.definitions.get(name)?;
            return self.branches_of(target, depth + 1, alone);
        }
        let mut plain = schema.clone();
        let all = plain.shift_remove("allOf");
        let any = plain.shift_remove("anyOf");
        let alone = alone && plain.is_empty();
        let mut alternatives = vec![plain];
        let parts = all.as_ref().and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for part in parts {
            let branches = self.branches_of(part, depth + 1, alone && parts.len() == 1 && any.is_none())?;
            alternatives = self.product(&alternatives, &branches)?;
        }
        if let Some(options) = any.as_ref().and_then(Value::as_array) {
            alternatives = self.any_of(&alternatives, options, depth, alone && parts.is_empty())?;
        }
        Some(alternatives)
    }

    /// An alternative of a lone `anyOf` that is a reference stays one: it may be recursive.
    fn any_of(
        &mut self,
        beside: &[Object],
        options: &[Value],
        depth: usize,
        alone: bool,
    ) -> Option<Vec<Object>> {
        let mut found = Vec::new();
        for option in options {
            match option {
                Value::Object(option) if alone && option.contains_key("$ref") => found.push(option.clone()),
                option => {
                    let branches = self.branches_of(option, depth + 1, alone)?;
                    found.extend(self.product(beside, &branches)?);
                }
            }
        }
        (found.len() <= MAX_BRANCHES).then_some(found)
    }

    fn branches_of(&mut self, schema: &Value, depth: usize, alone: bool) -> Option<Vec<Object>> {
        match schema {
            Value::Bool(true) => Some(vec![Object::new()]),
            Value::Object(schema) => self.expand(schema, depth, alone),
            _ => Some(vec![]),
        }
    }

    fn product(&mut self, these: &[Object], those: &[Object]) -> Option<Vec<Object>> {
        let steps = these.len().saturating_mul(those.len());
        self.steps_left = self.steps_left.checked_sub(steps.max(1))?;
        let is_product = these.len() > 1 && those.len() > 1;
        if steps > if is_product { MAX_PRODUCT } else { MAX_BRANCHES } {
            return None;
        }
        let mut found = Vec::new();
        for one in these {
            for other in those {
                match both(one, other)? {
                    Value::Object(schema) => found.push(schema),
                    Value::Bool(true) => found.push(Object::new()),
                    _ => {}
                }
            }
        }
        Some(found)
    }
}

/// Intersects two schemas; `false` if no value matches both, and `None` if no plain schema expresses the
/// intersection.
fn both(one: &Object, other: &Object) -> Option<Value> {
    if let (Some(own), Some(value)) = (one.get("type"), other.get("type"))
        && common_types(own, value).is_none()
    {
        return Some(Value::Bool(false));
    }
    let mut out = one.clone();
    if !merge_properties(&mut out, other)? {
        return Some(Value::Bool(false));
    }
    for (keyword, value) in other {
        let Some(own) = out.get(keyword) else {
            out.insert(keyword.clone(), value.clone());
            continue;
        };
        if own == value || matches!(keyword.as_str(), "properties" | "additionalProperties") {
            continue;
        }
        let merged = match keyword.as_str() {
            "type" => match common_types(own, value) {
                Some(types) => types,
                None => return Some(Value::Bool(false)),
            },
            "required" => union(own, value),
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
                larger(own, value)?
            }
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
                smaller(own, value)?
            }
            "enum" => common_values(own, value),
            "items" => both_values(own, value)?,
            _ => return None,
        };
        out.insert(keyword.clone(), merged);
    }
    Some(Value::Object(out))
}

fn both_values(one: &Value, other: &Value) -> Option<Value> {
    match (one, other) {
        (Value::Bool(true), schema) | (schema, Value::Bool(true)) => Some(schema.clone()),
        (Value::Bool(false), _) | (_, Value::Bool(false)) => Some(Value::Bool(false)),
        (one, other) if one == other => Some(one.clone()),
        (Value::Object(one), Value::Object(other)) => {
            let combines =
                |schema: &Object| ["$ref", "allOf", "anyOf"].iter().any(|key| schema.contains_key(*key));
            if combines(one) || combines(other) {
                return Some(json!({"allOf": [one, other]}));
            }
            both(one, other)
        }
        _ => None,
    }
}

/// Merges the properties of `other` into `out`; `additionalProperties` of one side applies to properties that
/// only the other names. Returns false if a required property has no values.
fn merge_properties(out: &mut Object, other: &Object) -> Option<bool> {
    if out.contains_key("patternProperties") || other.contains_key("patternProperties") {
        return None;
    }
    const ANY: Value = Value::Bool(true);
    let properties = |schema: &Object| schema.get("properties").and_then(Value::as_object).cloned();
    let further = |schema: &Object| schema.get("additionalProperties").cloned().unwrap_or(ANY);
    let (own, theirs) = (properties(out), properties(other));
    let (own_further, their_further) = (further(out), further(other));
    if own.is_none() && theirs.is_none() && own_further == ANY && their_further == ANY {
        return Some(true);
    }
    let (own, theirs) = (own.unwrap_or_default(), theirs.unwrap_or_default());
    let mut merged = Object::new();
    for (name, schema) in &own {
        merged.insert(name.clone(), both_values(schema, theirs.get(name).unwrap_or(&their_further))?);
    }
    for (name, schema) in theirs.iter().filter(|(name, _)| !own.contains_key(*name)) {
        merged.insert(name.clone(), both_values(&own_further, schema)?);
    }
    let further = both_values(&own_further, &their_further)?;
    merged.retain(|_, schema| *schema != Value::Bool(false) || further != Value::Bool(false));
    out.insert("properties".to_owned(), Value::Object(merged));
    if further != ANY {
        out.insert("additionalProperties".to_owned(), further);
    }
    Some(true)
}

fn common_types(one: &Value, other: &Value) -> Option<Value> {
    let [one, other] = [one, other].map(|types| names_of_types(types).unwrap_or_default());
    let mut common: Vec<&str> = one.iter().copied().filter(|name| other.contains(name)).collect();
    for (these, those) in [(&one, &other), (&other, &one)] {
        if these.contains(&"integer")
            && those.contains(&"number")
            && !common.iter().any(|name| matches!(*name, "integer" | "number"))
        {
            common.push("integer");
        }
    }
    match common.as_slice() {
        [] => None,
        [one] => Some(Value::from(*one)),
        _ => Some(Value::from(common)),
    }
}

fn union(one: &Value, other: &Value) -> Value {
    let mut names = one.as_array().cloned().unwrap_or_default();
    for name in other.as_array().into_iter().flatten() {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    Value::Array(names)
}

fn common_values(one: &Value, other: &Value) -> Value {
    let other = other.as_array().cloned().unwrap_or_default();
    let in_other = |value: &&Value| other.iter().any(|other| same_value(other, value));
    one.as_array().into_iter().flatten().filter(in_other).cloned().collect()
}

fn larger(one: &Value, other: &Value) -> Option<Value> {
    Some(if one.as_f64()? >= other.as_f64()? { one.clone() } else { other.clone() })
}

fn smaller(one: &Value, other: &Value) -> Option<Value> {
    Some(if one.as_f64()? <= other.as_f64()? { one.clone() } else { other.clone() })
}
