//! Conversion of arguments with a common type error.

use serde_json::{Map, Value};
use std::fmt;

/// Maximum depth of a value that is converted.
const MAX_DEPTH: usize = 64;

/// 2^53: integers below it have distinct floats; beyond it, several share one.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// Conversion of arguments before their validation, for models whose calls are not restricted by a grammar.
/// Models of this crate's engine do not need it: generated calls match the schema.
///
/// Arguments that are valid are never changed, and invalid ones only if the result is valid. The schema is
/// unambiguous in these cases:
///
/// | schema | argument | becomes |
/// |---|---|---|
/// | `number` | a text in the syntax of a JSON number, `"5"` | the number |
/// | `integer` | the same, of at most 64 bits, or below 2^53 with a fraction or an exponent | the number |
/// | `boolean` | `"true"`, `"false"`, in any case | the boolean |
/// | `array` | a single value other than an array or null | an array of it |
/// | an optional property that cannot be null | `null` | missing |
///
/// A union of types is unchanged, except for one type beside `null`.
///
/// ```
/// use lm_tools::{Coercion, ToolCall, Toolset, tool};
/// use serde_json::json;
///
/// /// Multiply a and b.
/// #[tool]
/// fn multiply(a: i64, b: i64) -> i64 {
///     a * b
/// }
///
/// let tools = Toolset::new().with(multiply::tool())?.with_coercion(Coercion::On);
/// let call = ToolCall::from_json(json!({"name": "multiply", "arguments": {"a": "3", "b": 5}}))?;
/// assert_eq!(tools.call(&call).content.text(), "15");
/// assert_eq!(tools.check(&call)?.coerced[0].to_string(), "/a: \"3\" to 3");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coercion {
    /// The model reads an error that names the argument, the expected type, and the value.
    #[default]
    Off,
    /// Such arguments are converted. [`Toolset::check`](crate::Toolset::check) returns the conversions of a
    /// call, and each call that runs with some is logged by their paths (`tracing`, level `warn`).
    On,
}

/// A converted argument.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Coerced {
    /// JSON pointer into the arguments.
    pub path: String,
    /// The value of the call.
    pub from: Value,
    /// The value that the tool gets; `None`: the argument is missing.
    pub to: Option<Value>,
}

impl fmt::Display for Coerced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.to {
            Some(to) => write!(f, "{}: {} to {to}", self.path, self.from),
            None => write!(f, "{}: {} removed", self.path, self.from),
        }
    }
}

/// Converts arguments; the result is to be validated.
pub(crate) fn coerce(schema: &Value, arguments: Value) -> (Value, Vec<Coerced>) {
    let mut walk = Walk { root: schema, done: Vec::new() };
    let arguments = walk.value(schema, arguments, "", MAX_DEPTH);
    (arguments, walk.done)
}

struct Walk<'a> {
    root: &'a Value,
    done: Vec<Coerced>,
}

impl<'a> Walk<'a> {
    fn value(&mut self, schema: &'a Value, value: Value, path: &str, depth: usize) -> Value {
        let Some(depth) = depth.checked_sub(1) else { return value };
        let schema = self.resolved(schema);
        let converted = match (only_type(schema), value) {
            (Some("object"), Value::Object(members)) => return self.object(schema, members, path, depth),
            (Some("array"), Value::Array(items)) => return self.array(schema, items, path, depth),
            (Some("array"), Value::Null) => return Value::Null,
            (Some("array"), value) => {
                let item = self.value(item_schema(schema, 0), value.clone(), &format!("{path}/0"), depth);
                (value, Value::Array(vec![item]))
            }
            (Some(kind), Value::String(text)) => match scalar(kind, &text) {
                Some(scalar) => (Value::String(text), scalar),
                None => return Value::String(text),
            },
            (_, value) => return value,
        };
        let (from, to) = converted;
        self.done.push(Coerced { path: path.to_owned(), from, to: Some(to.clone()) });
        to
    }

    fn object(&mut self, schema: &'a Value, members: Map<String, Value>, path: &str, depth: usize) -> Value {
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        let mut out = Map::new();
        for (name, value) in members {
            let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
            let declared = schema["properties"].get(&name);
            let is_optional = declared.is_some() && !required.iter().any(|required| *required == name);
            if value.is_null() && is_optional && declared.is_some_and(|schema| self.excludes_null(schema)) {
                self.done.push(Coerced { path, from: value, to: None });
                continue;
            }
            let schema = declared.unwrap_or_else(|| undeclared(schema));
            let value = self.value(schema, value, &path, depth);
            out.insert(name, value);
        }
        out.into()
    }

    fn array(&mut self, schema: &'a Value, items: Vec<Value>, path: &str, depth: usize) -> Value {
        let items = items.into_iter().enumerate();
        let convert =
            |(index, item)| self.value(item_schema(schema, index), item, &format!("{path}/{index}"), depth);
        items.map(convert).collect()
    }

    /// Follows references into the schema.
    fn resolved(&self, mut schema: &'a Value) -> &'a Value {
        for _ in 0..MAX_DEPTH {
            let Some(pointer) = schema["$ref"].as_str().and_then(|text| text.strip_prefix('#')) else {
                break;
            };
            let Some(target) = self.root.pointer(pointer) else { break };
            schema = target;
        }
        schema
    }

    /// Returns true if null is certainly invalid.
    fn excludes_null(&self, schema: &'a Value) -> bool {
        let schema = self.resolved(schema);
        match (&schema["type"], &schema["enum"]) {
            (Value::String(name), _) => name != "null",
            (Value::Array(names), _) => !names.iter().any(|name| name == "null"),
            (_, Value::Array(choices)) => !choices.contains(&Value::Null),
            _ => false,
        }
    }
}

/// The type of a schema, if it has one beside null.
fn only_type(schema: &Value) -> Option<&str> {
    match &schema["type"] {
        Value::String(name) => Some(name),
        Value::Array(names) => {
            let mut names = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            names.next().filter(|_| names.next().is_none())
        }
        _ => None,
    }
}

fn item_schema(schema: &Value, index: usize) -> &Value {
    schema["prefixItems"].get(index).unwrap_or(&schema["items"])
}

/// The schema of members that `properties` does not name. With patterns there are several.
fn undeclared(schema: &Value) -> &Value {
    if schema["patternProperties"].is_null() { &schema["additionalProperties"] } else { &Value::Null }
}

/// The value of a text as a number or a boolean.
fn scalar(kind: &str, text: &str) -> Option<Value> {
    match kind {
        "integer" => serde_json::from_str(text).ok().filter(is_exact),
        "number" => serde_json::from_str(text).ok().filter(Value::is_number),
        "boolean" if text.eq_ignore_ascii_case("true") => Some(true.into()),
        "boolean" if text.eq_ignore_ascii_case("false") => Some(false.into()),
        _ => None,
    }
}

/// Returns true for an integer of 64 bits, and for a float below 2^53.
fn is_exact(number: &Value) -> bool {
    let is_integer = number.is_i64() || number.is_u64();
    is_integer || number.as_f64().is_some_and(|float| float.abs() < MAX_EXACT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn coerced(property: Value, value: Value) -> (Value, usize) {
        let schema = json!({"type": "object", "properties": {"x": property}});
        let (mut arguments, done) = coerce(&schema, json!({"x": value}));
        (arguments["x"].take(), done.len())
    }

    #[test]
    fn numeric_text_is_converted_only_if_expected() {
        assert_eq!(coerced(json!({"type": "integer"}), json!("5")), (json!(5), 1));
        assert_eq!(coerced(json!({"type": ["number", "null"]}), json!("1.5e3")), (json!(1500.0), 1));
        for (schema, value) in [
            (json!({"type": "string"}), json!("5")),
            (json!({"type": ["integer", "string"]}), json!("5")),
            (json!({}), json!("5")),
            (json!({"type": "integer"}), json!("five")),
            (json!({"type": "integer"}), json!("0x5")),
            (json!({"type": "integer"}), json!("")),
            (json!({"type": "boolean"}), json!("yes")),
            (json!({"type": "boolean"}), json!(1)),
        ] {
            assert_eq!(coerced(schema.clone(), value.clone()), (value, 0), "{schema}");
        }
    }

    #[test]
    fn integer_text_keeps_its_digits_or_stays_text() {
        let cases = [
            ("9007199254740993", json!(9_007_199_254_740_993_u64), 1),
            ("-9223372036854775808", json!(i64::MIN), 1),
            ("18446744073709551615", json!(u64::MAX), 1),
            ("9007199254740991.0", json!(9_007_199_254_740_991.0), 1),
            ("9007199254740993.0", json!("9007199254740993.0"), 0),
            ("-9007199254740992.0", json!("-9007199254740992.0"), 0),
            ("18446744073709551616", json!("18446744073709551616"), 0),
            ("1e300", json!("1e300"), 0),
        ];
        for (text, value, conversions) in cases {
            assert_eq!(coerced(json!({"type": "integer"}), json!(text)), (value, conversions), "{text}");
        }
        assert_eq!(coerced(json!({"type": "number"}), json!("1e300")), (json!(1e300), 1));
    }

    #[test]
    fn boolean_in_a_text_becomes_the_boolean() {
        assert_eq!(coerced(json!({"type": "boolean"}), json!("True")), (json!(true), 1));
        assert_eq!(coerced(json!({"type": "boolean"}), json!("false")), (json!(false), 1));
    }

    #[test]
    fn single_value_becomes_an_array() {
        let integers = json!({"type": "array", "items": {"type": "integer"}});
        assert_eq!(coerced(integers.clone(), json!("5")), (json!([5]), 2));
        assert_eq!(coerced(integers.clone(), json!(["5", 6])), (json!([5, 6]), 1));
        assert_eq!(coerced(integers, json!(null)), (json!(null), 1), "an absent optional");
        let pair = json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "boolean"}]});
        assert_eq!(coerced(pair, json!(["5", "true"])), (json!([5, true]), 2));
    }

    #[test]
    fn null_is_removed_only_if_optional_and_not_nullable() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string"}, "b": {"$ref": "#/$defs/b"}, "c": {"type": ["string", "null"]}, "d": {}},
            "$defs": {"b": {"enum": ["x"]}}});
        let (arguments, done) =
            coerce(&schema, json!({"a": null, "b": null, "c": null, "d": null, "e": null}));
        assert_eq!(arguments, json!({"a": null, "c": null, "d": null, "e": null}));
        assert_eq!(done, [Coerced { path: "/b".to_owned(), from: Value::Null, to: None }]);
    }

    #[test]
    fn map_values_are_converted_by_their_schema() {
        let map = json!({"type": "object", "properties": {"name": {"type": "string"}},
            "additionalProperties": {"type": "integer"}});
        let given = json!({"name": "1", "a": "2", "b": 3});
        assert_eq!(coerced(map, given), (json!({"name": "1", "a": 2, "b": 3}), 1));
        let patterns = json!({"type": "object", "patternProperties": {"^s_": {"type": "string"}},
            "properties": {"n": {"type": "integer"}}, "additionalProperties": {"type": "integer"}});
        assert_eq!(
            coerced(patterns, json!({"s_a": "1", "b": "2", "n": "3"})),
            (json!({"s_a": "1", "b": "2", "n": 3}), 1)
        );
        let open = json!({"type": "object", "additionalProperties": true});
        assert_eq!(coerced(open, json!({"a": "2"})), (json!({"a": "2"}), 0));
    }

    #[test]
    fn nested_values_are_converted_at_their_pointers() {
        let schema = json!({"type": "object", "properties": {"a/b": {"type": "array", "items": {
            "type": "object", "properties": {"n": {"type": "number"}}}}}});
        let (arguments, done) = coerce(&schema, json!({"a/b": [{"n": "2"}]}));
        assert_eq!(arguments, json!({"a/b": [{"n": 2}]}));
        assert_eq!(done[0].to_string(), "/a~1b/0/n: \"2\" to 2");
    }
}
