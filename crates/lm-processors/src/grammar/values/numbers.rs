//! Numbers: every syntax writes them as JSON does.

use lm_template::Value;

use super::Object;

/// Whole numbers of at most 15 digits: every reader keeps them. (`-0` would be read as a float.)
const INTEGER: &str = "/0|-?[1-9][0-9]{0,14}/";
/// Numbers that no reader overflows.
const NUMBER: &str = r"/-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,2})?/";
/// Bounds of numbers that have only one.
const LARGEST: f64 = 999_999_999_999_999.0;

/// An expression for numbers of the type `name` within the bounds of `schema`.
pub(super) fn number(name: &str, schema: &Object) -> String {
    const BOUNDS: [&str; 5] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
    let mut bounds: Object =
        BOUNDS.iter().filter_map(|key| Some(((*key).to_owned(), schema.get(*key)?.clone()))).collect();
    if bounds.is_empty() {
        return if name == "integer" { INTEGER } else { NUMBER }.to_owned();
    }
    for (bound, exclusive, largest) in
        [("minimum", "exclusiveMinimum", -LARGEST), ("maximum", "exclusiveMaximum", LARGEST)]
    {
        for key in [bound, exclusive] {
            if bounds.get(key).and_then(Value::as_f64).is_some_and(|value| value.abs() > LARGEST) {
                bounds.shift_remove(key);
            }
        }
        if !bounds.contains_key(bound) && !bounds.contains_key(exclusive) {
            bounds.insert(bound.to_owned(), Value::from(largest as i64));
        }
    }
    bounds.insert("type".to_owned(), name.into());
    format!("%json {}", Value::Object(bounds))
}
