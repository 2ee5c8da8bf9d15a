//! Schemas in Gemini's subset of OpenAPI 3.0.

use serde_json::{Map, Value, json};

/// Keywords of the subset whose values are copied unchanged.
const KEPT: [&str; 17] = [
    "format",
    "title",
    "description",
    "nullable",
    "maxItems",
    "minItems",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "example",
    "propertyOrdering",
    "default",
    "minimum",
    "maximum",
];

/// Types as Gemini's libraries write them.
const TYPES: [(&str, &str); 7] = [
    ("ARRAY", "array"),
    ("BOOLEAN", "boolean"),
    ("INTEGER", "integer"),
    ("NULL", "null"),
    ("NUMBER", "number"),
    ("OBJECT", "object"),
    ("STRING", "string"),
];

/// Writes a JSON schema in the subset; parts outside of it are added to `dropped`.
pub(crate) fn subset(schema: &Value, tool: &str, dropped: &mut Vec<String>) -> Value {
    match schema {
        Value::Object(_) => Subset { dropped }.schema(schema, &format!("{tool}#")),
        _ => Value::Null,
    }
}

struct Subset<'a> {
    dropped: &'a mut Vec<String>,
}

impl Subset<'_> {
    fn schema(&mut self, schema: &Value, at: &str) -> Value {
        let Some(object) = schema.as_object() else { return json!({}) }; // `true`: anything.
        let mut out = Map::new();
        for (keyword, value) in object {
            let at = format!("{at}/{}", keyword.replace('~', "~0").replace('/', "~1"));
            if !self.keyword(keyword, value, &at, &mut out) {
                self.dropped.push(at);
            }
        }
        out.into()
    }

    /// Writes a keyword; false if it cannot be written.
    fn keyword(&mut self, keyword: &str, value: &Value, at: &str, out: &mut Map<String, Value>) -> bool {
        let is_text = |value: &Value| value.is_string();
        let (name, value) = match (keyword, value) {
            (keyword, value) if KEPT.contains(&keyword) => (keyword, value.clone()),
            ("type", Value::String(_)) => (keyword, value.clone()),
            ("type", Value::Array(names)) => return types(names, out),
            ("enum", Value::Array(choices)) if choices.iter().all(is_text) => (keyword, value.clone()),
            ("enum", Value::Array(choices)) if choices.iter().all(|c| c.is_string() || c.is_null()) => {
                out.insert("nullable".to_owned(), true.into());
                (keyword, choices.iter().filter(|choice| choice.is_string()).cloned().collect())
            }
            ("const", Value::String(_)) => ("enum", json!([value])),
            ("examples", Value::Array(examples)) if !examples.is_empty() => ("example", examples[0].clone()),
            ("items", Value::Object(_)) => (keyword, self.schema(value, at)),
            ("properties", Value::Object(properties)) => {
                let mut write = |(name, schema): (&String, &Value)| {
                    (name.clone(), self.schema(schema, &format!("{at}/{}", name.replace('/', "~1"))))
                };
                (keyword, properties.iter().map(&mut write).collect::<Map<_, _>>().into())
            }
            ("anyOf" | "oneOf", Value::Array(schemas)) => {
                let is_null = |schema: &Value| schema == &json!({"type": "null"});
                if schemas.iter().any(is_null) {
                    out.insert("nullable".to_owned(), true.into());
                }
                let schemas = schemas.iter().enumerate().filter(|(_, schema)| !is_null(schema));
                let write = |(index, schema)| self.schema(schema, &format!("{at}/{index}"));
                ("anyOf", schemas.map(write).collect())
            }
            _ => return false,
        };
        out.insert(name.to_owned(), value);
        true
    }
}

/// Writes a list of types.
fn types(names: &[Value], out: &mut Map<String, Value>) -> bool {
    let (null, others): (Vec<&Value>, Vec<&Value>) = names.iter().partition(|name| *name == "null");
    if !null.is_empty() {
        out.insert("nullable".to_owned(), true.into());
    }
    match others.as_slice() {
        [] => out.insert("type".to_owned(), "null".into()),
        [name] => out.insert("type".to_owned(), (*name).clone()),
        names => {
            let schemas = names.iter().map(|name| json!({"type": name})).collect();
            out.insert("anyOf".to_owned(), schemas)
        }
    };
    true
}

/// Reads a schema with types in capitals, as Gemini's libraries write them; `None` for other schemas.
pub(crate) fn to_json_schema(schema: &Value) -> Option<Value> {
    json_type(schema.get("type")?.as_str()?)?;
    Some(lower(schema))
}

fn json_type(name: &str) -> Option<&'static str> {
    TYPES.iter().find(|(capitals, _)| *capitals == name).map(|(_, name)| *name)
}

fn lower(schema: &Value) -> Value {
    let Some(object) = schema.as_object() else { return schema.clone() };
    let is_nullable = object.get("nullable") == Some(&Value::Bool(true));
    let read = |(keyword, value): (&String, &Value)| {
        let value = match (keyword.as_str(), value) {
            ("nullable", _) => return None,
            ("type", Value::String(name)) => match (json_type(name).unwrap_or(name), is_nullable) {
                (name, true) => json!([name, "null"]),
                (name, false) => name.into(),
            },
            ("enum", Value::Array(choices)) if is_nullable => {
                choices.iter().cloned().chain([Value::Null]).collect()
            }
            ("items", schema) => lower(schema),
            ("anyOf", Value::Array(schemas)) => schemas.iter().map(lower).collect(),
            ("properties", Value::Object(properties)) => properties
                .iter()
                .map(|(name, schema)| (name.clone(), lower(schema)))
                .collect::<Map<_, _>>()
                .into(),
            // Counts are texts there, since they are 64 bits wide.
            (
                "minItems" | "maxItems" | "minLength" | "maxLength" | "minProperties" | "maxProperties",
                Value::String(count),
            ) => count.parse::<u64>().map_or_else(|_| value.clone(), Value::from),
            _ => value.clone(),
        };
        Some((keyword.clone(), value))
    };
    object.iter().filter_map(read).collect::<Map<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_keywords_are_dropped_and_listed() {
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["a"], "properties": {
            "a": {"type": ["integer", "null"], "minimum": 1, "exclusiveMaximum": 5},
            "b/c": {"oneOf": [{"type": "string", "const": "x"}, {"type": "null"}], "not": {}},
            "d": {"type": ["integer", "string"], "examples": [3]},
            "e": {"type": "string", "enum": ["x", null]},
            "f": {"enum": [1]}}});
        let mut dropped = Vec::new();
        let expected = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"nullable": true, "type": "integer", "minimum": 1},
            "b/c": {"nullable": true, "anyOf": [{"type": "string", "enum": ["x"]}]},
            "d": {"anyOf": [{"type": "integer"}, {"type": "string"}], "example": 3},
            "e": {"type": "string", "nullable": true, "enum": ["x"]},
            "f": {}}});
        assert_eq!(subset(&schema, "f", &mut dropped), expected);
        let expected = [
            "f#/additionalProperties",
            "f#/properties/a/exclusiveMaximum",
            "f#/properties/b~1c/not",
            "f#/properties/f/enum",
        ];
        assert_eq!(dropped, expected);
    }

    #[test]
    fn types_in_capitals_are_read_as_json_schema() {
        let schema = json!({"type": "OBJECT", "properties": {
            "a": {"type": "ARRAY", "items": {"type": "STRING", "enum": ["x"], "nullable": true}, "minItems": "2"}}});
        let expected = json!({"type": "object", "properties": {
            "a": {"type": "array", "items": {"type": ["string", "null"], "enum": ["x", null]}, "minItems": 2}}});
        assert_eq!(to_json_schema(&schema), Some(expected.clone()));
        assert_eq!(to_json_schema(&expected), None, "it is JSON Schema");
    }
}
