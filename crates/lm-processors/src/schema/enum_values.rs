//! Values of `enum` and `const`, filtered by the rest of their schema.

use lm_template::Value;

use super::error::SchemaError;
use super::integer_range::beyond_64_bits;
use super::keywords::role;
use super::node::{Node, Object};
use super::normalize::Normalizer;
use super::validator::{validator, validators};

impl Normalizer<'_> {
    /// Reduces a schema that lists its values to those that match all of it; the list is then the whole
    /// schema.
    ///
    /// # Errors
    /// If no value is left, except in a branch of a combination or an optional property.
    pub(super) fn filter_enum(&mut self, out: &mut Object, node: Node<'_>) -> Result<(), SchemaError> {
        let Some(mut values) = listed(out) else { return Ok(()) };
        let keyword = if node.map.contains_key("enum") { "enum" } else { "const" };
        if node.map.keys().any(|key| !["enum", "const"].contains(&&**key) && role(key).is_some()) {
            let Some(fits) = self.fits(node, &values) else {
                out.insert("enum".to_owned(), values.into());
                out.shift_remove("const");
                return Ok(());
            };
            let mut fits = fits.into_iter();
            values.retain(|_| fits.next().unwrap_or(true));
            self.unenforced.retain(|unenforced| unenforced.path != node.path);
        }
        if values.is_empty() && !node.place.may_be_empty {
            return Err(SchemaError::unsatisfiable(
                node.path,
                keyword,
                ": none of the listed values fits the rest",
            ));
        }
        if let Some(number) = values.iter().find_map(beyond_64_bits) {
            return Err(node.bad(keyword, &format!("{number} {}", super::integer_range::BEYOND)));
        }
        out.clear();
        out.insert("enum".to_owned(), values.into());
        Ok(())
    }

    /// Validates each of `values` against the schema; `None` if the validator does not support the schema.
    fn fits(&mut self, node: Node<'_>, values: &[Value]) -> Option<Vec<bool>> {
        if let Ok(alone) = validator(&Value::Object(node.map.clone()), true) {
            return Some(values.iter().map(|value| alone.is_valid(value)).collect());
        }
        let root = self.document.root();
        let whole = self.validators.get_or_insert_with(|| validators(root)).as_ref()?;
        let whole = whole.get(node.path)?;
        Some(values.iter().map(|value| whole.is_valid(value)).collect())
    }
}

/// The listed values of a schema; with both keywords, their intersection.
pub(crate) fn listed(schema: &Object) -> Option<Vec<Value>> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(value), Some(Value::Array(values))) => {
            Some(values.iter().filter(|other| same_value(other, value)).cloned().collect())
        }
        (Some(value), _) => Some(vec![value.clone()]),
        (None, Some(Value::Array(values))) => Some(values.clone()),
        _ => None,
    }
}

/// Returns true if two values are equal by JSON Schema's rules: `1` and `1.0` are the same number.
pub(crate) fn same_value(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || {
                let float = one.is_f64() || other.is_f64();
                float && one.as_f64() == other.as_f64()
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_value(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| same_value(value, other)))
        }
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::schema::{Reading, normalized};

    #[test]
    fn const_and_enum_are_intersected_by_value() {
        let normalized = |schema| normalized(&schema, Reading::Open).map(|normalized| normalized.schema);
        for (constant, listed, left) in [
            (json!(1), json!([1.0, 2]), json!([1.0])),
            (json!({"a": [1, null]}), json!([{"a": [1.0, null]}, {}]), json!([{"a": [1.0, null]}])),
        ] {
            let schema = json!({"const": constant, "enum": listed});
            assert_eq!(normalized(schema).expect("a value is in both"), json!({"enum": left}));
        }
        for (constant, listed) in [
            (json!(3), json!([1, 2])),
            (json!({"a": 1}), json!([{"a": 1, "b": 2}])),
            (json!([1]), json!([[1, 1], "1"])),
        ] {
            let error =
                normalized(json!({"const": constant, "enum": listed})).expect_err("no value is in both");
            assert_eq!(error.keyword, "enum", "{error}");
        }
    }
}
