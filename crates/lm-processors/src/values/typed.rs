//! Values written as bare text, typed only by the tool's schema.

use serde_json::Value;

use super::number::number;
use super::python::python_literal;
use super::schema::{Schema, Types};
use crate::dialect::Untyped;

/// Converts `text` to a value.
///
/// Strings are verbatim. Other types ignore whitespace around the text: `null` and `None`, booleans in any
/// case, numbers, and arrays and objects as JSON or Python literals. Among several types, a string is the
/// last resort, unless only the string matches the schema: if a string or a list of numbers is allowed, `[a]`
/// and `["a"]` are strings. A text that matches no declared type stays a string: the caller's validation
/// reports the fault to the model.
pub(crate) fn typed_value(text: &str, schema: Option<Schema<'_>>, untyped: Untyped) -> Value {
    let types = schema.map_or(Types::ANY, Schema::types);
    if let Some(listed) = schema.and_then(|schema| schema.listed(text)) {
        return listed.clone();
    }
    let string = Value::String(text.to_owned());
    let string_first = types == Types::ANY && untyped == Untyped::Text;
    if types == Types::STRING || string_first && schema.is_none() {
        return string;
    }
    match (of_other_type(text.trim(), types), schema) {
        (Some(value), Some(schema)) if string_first => schema.first_fitting(vec![string, value]),
        (Some(value), Some(schema)) if types.contains(Types::STRING) => {
            schema.first_fitting(vec![value, string])
        }
        (Some(value), _) => value,
        (None, _) => string,
    }
}

fn of_other_type(text: &str, types: Types) -> Option<Value> {
    if let Some(constant) = constant(text, types) {
        return Some(constant);
    }
    if types.meets(Types::NUMBER)
        && let Some(value) = number(text)
    {
        return as_declared(value, types);
    }
    let structure = text.starts_with(['{', '[', '(']);
    let value =
        if structure { serde_json::from_str(text).ok().or_else(|| python_literal(text)) } else { None };
    value.filter(|value| types.contains(Types::of(value)))
}

/// Parses `null` and booleans: in JSON or Python spelling if the text could also be a string, else in any
/// case.
fn constant(text: &str, types: Types) -> Option<Value> {
    let is = |spellings: [&str; 2]| match types.contains(Types::STRING) {
        true => spellings.contains(&text),
        false => spellings.iter().any(|spelling| text.eq_ignore_ascii_case(spelling)),
    };
    let digit_for_boolean = !types.contains(Types::INTEGER) && !types.contains(Types::STRING);
    if types.contains(Types::NULL) && is(["null", "None"]) {
        return Some(Value::Null);
    }
    if !types.contains(Types::BOOLEAN) {
        return None;
    }
    match text {
        "1" if digit_for_boolean => Some(Value::Bool(true)),
        "0" if digit_for_boolean => Some(Value::Bool(false)),
        _ if is(["true", "True"]) => Some(Value::Bool(true)),
        _ if is(["false", "False"]) => Some(Value::Bool(false)),
        _ => None,
    }
}

/// Converts a number to the declared type: `5.0` is also an integer, `5.5` is not.
fn as_declared(value: serde_json::Number, types: Types) -> Option<Value> {
    if types.contains(Types::of(&Value::Number(value.clone()))) {
        return Some(Value::Number(value));
    }
    let float = value.as_f64()?;
    // Up to 2^53, every integer is exact.
    (float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0).then(|| Value::from(float as i64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::values::SchemaCache;

    #[test]
    fn texts_are_typed_by_their_schema() {
        let string_or = |other: &str| json!({"type": ["string", other]});
        let cases = [
            (" 12 ", json!({"type": "string"}), json!(" 12 ")),
            ("null", json!({"type": "string"}), json!("null")),
            ("null", string_or("null"), json!(null)),
            ("nothing", string_or("null"), json!("nothing")),
            ("42", string_or("integer"), json!(42)),
            ("42 Main St", string_or("integer"), json!("42 Main St")),
            ("{broken", string_or("object"), json!("{broken")),
            ("{\"a\": 1}", string_or("object"), json!({"a": 1})),
            ("[1]", string_or("object"), json!("[1]")),
            ("\n7\n", json!({"type": "integer"}), json!(7)),
            ("7.0", json!({"type": "integer"}), json!(7)),
            ("7.5", json!({"type": "integer"}), json!("7.5")),
            ("1e3", json!({"type": "integer"}), json!(1000)),
            ("1e300", json!({"type": "integer"}), json!("1e300")),
            ("-1e19", json!({"type": "integer"}), json!("-1e19")),
            ("42", json!({"type": "number"}), json!(42)),
            ("5.0", json!({"type": "number"}), json!(5.0)),
            ("TRUE", json!({"type": "boolean"}), json!(true)),
            ("0", json!({"type": "boolean"}), json!(false)),
            ("1", json!({"type": ["boolean", "integer"]}), json!(1)),
            ("0", string_or("boolean"), json!("0")),
            ("1", string_or("boolean"), json!("1")),
            ("maybe", json!({"type": "boolean"}), json!("maybe")),
            ("None", json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), json!(null)),
            ("[1,\n2]", json!({"type": "array"}), json!([1, 2])),
            ("{'a': True}", json!({"type": "object"}), json!({"a": true})),
            ("celsius", json!({"enum": ["celsius", 1]}), json!("celsius")),
            ("1", json!({"enum": ["celsius", 1]}), json!(1)),
            ("1", json!({"enum": ["1", "2"]}), json!("1")),
            ("1", json!({"anyOf": [{"const": "1"}, {"const": 2}]}), json!("1")),
            ("7", json!({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 9}]}), json!("7")),
            ("[1]", json!({"anyOf": [{"type": "string"}, {"items": {"type": "string"}}]}), json!("[1]")),
            (
                "2.5",
                json!({"anyOf": [{"enum": [null, true, "x", 2.5, ["x"]]}, {"type": "object"}]}),
                json!(2.5),
            ),
            ("[\"a\"]", json!({"anyOf": [{"type": "string"}, {"items": {"type": "string"}}]}), json!(["a"])),
            (
                "[1]",
                json!({"anyOf": [{"type": "string"}, {"$ref": "#/$defs/l"}],
                "$defs": {"l": {"type": "array", "items": {"$ref": "#/$defs/s"}}, "s": {"type": "string"}}}),
                json!("[1]"),
            ),
            ("null", json!({"type": "string", "nullable": true}), json!("null")),
            ("null", json!({"type": "integer", "nullable": true}), json!(null)),
        ];
        for (text, schema, expected) in cases {
            let cache = SchemaCache::default();
            let schema = Schema::new(&schema, &cache);
            assert_eq!(typed_value(text, Some(schema), Untyped::Json), expected, "{text}: {schema:?}");
        }
    }

    #[test]
    fn untyped_text_is_json_or_text() {
        let cases = [
            ("7", json!(7)),
            ("true", json!(true)),
            ("{\"a\": []}", json!({"a": []})),
            ("x", json!("x")),
            ("TRUE", json!("TRUE")),
            ("\"x\"", json!("\"x\"")),
        ];
        for (text, expected) in cases {
            assert_eq!(typed_value(text, None, Untyped::Json), expected);
            assert_eq!(typed_value(text, None, Untyped::Text), json!(text));
        }
    }
}
