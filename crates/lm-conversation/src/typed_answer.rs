//! JSON schemas of Rust types.

use std::collections::BTreeSet;

use lm_processors::ResponseFormat;
use lm_template::Value;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};

/// Format of an answer that is a `T` as JSON, for
/// [`TurnOptions::response_format`](crate::TurnOptions::response_format): the type's JSON schema, with the
/// bounds of its numbers and only the declared fields of its structs.
///
/// ```
/// use lm_conversation::{ResponseFormat, answer_format};
///
/// let ResponseFormat::JsonSchema(schema) = answer_format::<u8>() else { panic!("a type has a schema") };
/// assert_eq!((&schema["type"], &schema["maximum"]), (&"integer".into(), &255.into()));
/// ```
pub fn answer_format<T: JsonSchema>() -> ResponseFormat {
    ResponseFormat::JsonSchema(schema::<T>())
}

/// JSON schema of `T`. Numbers have the bounds of their Rust types, which schemars only names in `format`.
/// Structs have exactly their fields: ignored ones would only cost tokens.
fn schema<T: JsonSchema>() -> Value {
    let mut schema = schemars::schema_for!(T);
    RecursiveTransform(bound_numbers).transform(&mut schema);
    let mut schema = Value::from(schema);
    let mut parts = BTreeSet::new();
    find_parts(&schema, &mut parts);
    close_objects(&mut schema, false, &parts);
    schema
}

/// Keywords of schemas that a value matches in addition to the enclosing one.
const COMBINATIONS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Collects references to definitions that describe a part of an object only: beside other properties.
fn find_parts(schema: &Value, parts: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            if map.contains_key("properties") {
                references(schema, parts);
            }
            map.values().for_each(|schema| find_parts(schema, parts));
        }
        Value::Array(list) => list.iter().for_each(|schema| find_parts(schema, parts)),
        _ => {}
    }
}

/// References of a schema for the same value.
fn references(schema: &Value, found: &mut BTreeSet<String>) {
    found.extend(schema["$ref"].as_str().map(str::to_owned));
    let options = COMBINATIONS.iter().filter_map(|key| schema[key].as_array()).flatten();
    options.for_each(|option| references(option, found));
}

/// Forbids further properties of objects with listed ones. A `part` of an object has properties elsewhere.
fn close_objects(schema: &mut Value, part: bool, parts: &BTreeSet<String>) {
    let Some(map) = schema.as_object_mut() else { return };
    let combined = map.contains_key("$ref") || COMBINATIONS.iter().any(|key| map.contains_key(*key));
    let has_properties = map.contains_key("properties");
    if has_properties && !part && !combined {
        map.entry("additionalProperties").or_insert(false.into());
    }
    for (key, value) in map {
        match (key.as_str(), value) {
            ("properties", Value::Object(all)) => {
                all.values_mut().for_each(|schema| close_objects(schema, false, parts));
            }
            ("$defs", Value::Object(all)) => {
                for (name, schema) in all {
                    close_objects(schema, parts.contains(&format!("#/$defs/{name}")), parts);
                }
            }
            (key, Value::Array(all)) if COMBINATIONS.contains(&key) => {
                let part = part || has_properties || key == "allOf";
                all.iter_mut().for_each(|schema| close_objects(schema, part, parts));
            }
            ("prefixItems", Value::Array(all)) => {
                all.iter_mut().for_each(|schema| close_objects(schema, false, parts));
            }
            ("items" | "additionalProperties", schema) => close_objects(schema, false, parts),
            _ => {}
        }
    }
}

fn bound_numbers(schema: &mut Schema) {
    let (minimum, maximum): (Value, Value) = match schema.get("format").and_then(Value::as_str) {
        Some("int8") => (i8::MIN.into(), i8::MAX.into()),
        Some("int16") => (i16::MIN.into(), i16::MAX.into()),
        Some("int32") => (i32::MIN.into(), i32::MAX.into()),
        Some("int" | "int64") => (i64::MIN.into(), i64::MAX.into()),
        Some("uint8") => (0.into(), u8::MAX.into()),
        Some("uint16") => (0.into(), u16::MAX.into()),
        Some("uint32") => (0.into(), u32::MAX.into()),
        Some("float") => (f64::from(f32::MIN).into(), f64::from(f32::MAX).into()),
        Some("uint" | "uint64") => (0.into(), u64::MAX.into()),
        _ => return,
    };
    let object = schema.ensure_object();
    object.entry("minimum").or_insert(minimum);
    object.entry("maximum").or_insert(maximum);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types whose fields serde takes from one object: a struct with a flattened one, and tagged enums.
    mod types {
        #![allow(dead_code, reason = "only their schemas are used")]
        use std::collections::BTreeMap;

        use schemars::JsonSchema;

        #[derive(JsonSchema)]
        pub struct Inner {
            pub a: u8,
        }

        #[derive(JsonSchema)]
        pub struct Flat {
            pub b: Vec<Inner>,
            #[serde(flatten)]
            pub inner: Inner,
        }

        #[derive(JsonSchema)]
        #[serde(tag = "kind")]
        pub enum Tagged {
            One(Inner),
            Two { c: Option<Inner> },
        }

        #[derive(JsonSchema)]
        pub struct Open {
            pub d: BTreeMap<String, Inner>,
            #[serde(flatten)]
            pub rest: BTreeMap<String, u8>,
        }

        #[derive(JsonSchema)]
        pub struct Both {
            #[serde(flatten)]
            pub kind: Tagged,
            pub e: bool,
        }
    }

    #[test]
    fn structs_require_exactly_their_fields() {
        let valid = |schema: &Value, text: &str| {
            let value: Value = serde_json::from_str(text).unwrap();
            jsonschema::is_valid(schema, &value)
        };
        let cases = [
            (schema::<types::Flat>(), r#"{"a": 1, "b": [{"a": 2}]}"#, r#"{"a": 1, "b": [{"a": 2, "x": 1}]}"#),
            (schema::<types::Flat>(), r#"{"a": 1, "b": []}"#, r#"{"a": 1, "b": [], "x": 1}"#),
            (schema::<types::Tagged>(), r#"{"kind": "Two", "c": {"a": 1}}"#, r#"{"kind": "Two", "x": 1}"#),
            (schema::<types::Tagged>(), r#"{"kind": "One", "a": 1}"#, r#"{"kind": "One"}"#),
            (
                schema::<types::Open>(),
                r#"{"d": {"k": {"a": 1}}, "other": 5}"#,
                r#"{"d": {"k": {"a": 1, "x": 1}}}"#,
            ),
            (schema::<types::Both>(), r#"{"kind": "One", "a": 1, "e": true}"#, r#"{"kind": "One", "a": 1}"#),
            (schema::<types::Inner>(), r#"{"a": 1}"#, r#"{"a": 1, "x": 1}"#),
        ];
        for (schema, taken, refused) in cases {
            assert!(valid(&schema, taken), "{taken}: {schema}");
            assert!(!valid(&schema, refused), "{refused}: {schema}");
        }
    }

    #[test]
    fn numbers_have_the_bounds_of_their_types() {
        let of_list = schema::<Vec<Option<i32>>>();
        assert_eq!(
            (&of_list["items"]["minimum"], &of_list["items"]["maximum"]),
            (&i32::MIN.into(), &i32::MAX.into())
        );
        assert_eq!(schema::<u64>()["maximum"], u64::MAX);
        assert_eq!(schema::<std::num::NonZeroU8>()["minimum"], 1);
    }
}
