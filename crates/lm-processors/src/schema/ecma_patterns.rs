//! Translation of a schema's patterns to the engine of the validator.

use std::collections::HashSet;

use lm_template::Value;
use serde_json::{Map, json};

use super::document::escaped;
use super::ecma::{PatternError, for_validation};
use super::error::{SchemaError, SchemaFault};
use super::keywords::{MAPS, holds_schemas};

/// Maximum nesting depth of lists and objects in a schema.
const MAX_DEPTH: usize = 200;
/// Members of a schema that are data.
const DATA: &[&str] = &["const", "default", "enum", "example", "examples"];

/// Copies a schema with its patterns translated to the engine of the validator, and without names that
/// `required` repeats.
///
/// # Errors
/// [`PatternError`], with its place.
pub(super) fn with_ecma_patterns(schema: &Value) -> Result<Value, SchemaError> {
    translated(schema, "#", 0)
}

fn translated(schema: &Value, path: &str, depth: usize) -> Result<Value, SchemaError> {
    if depth > MAX_DEPTH {
        return Err(SchemaError::new(path, "", SchemaFault::TooLarge("nested more than 200 deep")));
    }
    let depth = depth + 1;
    let below = |key: &str| format!("{path}/{}", escaped(key));
    match schema {
        Value::Array(schemas) => schemas
            .iter()
            .enumerate()
            .map(|(at, schema)| translated(schema, &below(&at.to_string()), depth))
            .collect(),
        Value::Object(members) => {
            let mut out = Map::new();
            for (key, value) in members {
                let value = match (key.as_str(), value) {
                    ("pattern", Value::String(pattern)) => searched(pattern, path, key)?.into(),
                    ("required", Value::Array(names)) => {
                        let mut seen = HashSet::new();
                        names.iter().filter(|name| seen.insert(*name)).cloned().collect()
                    }
                    ("patternProperties", Value::Object(schemas)) => by_pattern(schemas, path, depth)?,
                    (key, Value::Object(schemas)) if MAPS.contains(&key) => {
                        let at = below(key);
                        let schema = |(name, schema): (&String, &Value)| {
                            let schema = translated(schema, &format!("{at}/{}", escaped(name)), depth)?;
                            Ok((name.clone(), schema))
                        };
                        Value::Object(schemas.iter().map(schema).collect::<Result<_, SchemaError>>()?)
                    }
                    (key, value) if holds_schemas(key) => translated(value, &below(key), depth)?,
                    (key, value) if DATA.contains(&key) => value.clone(),
                    // A reference may point into other members.
                    (key, value) => translated(value, &below(key), depth).unwrap_or_else(|_| value.clone()),
                };
                out.insert(key.clone(), value);
            }
            Ok(Value::Object(out))
        }
        other => Ok(other.clone()),
    }
}

/// Translates the names of `patternProperties`.
fn by_pattern(schemas: &Map<String, Value>, path: &str, depth: usize) -> Result<Value, SchemaError> {
    let mut out: Map<String, Value> = Map::new();
    for (pattern, schema) in schemas {
        let schema = translated(schema, &format!("{path}/patternProperties/{}", escaped(pattern)), depth)?;
        let searched = searched(pattern, path, "patternProperties")?;
        let schema = match out.shift_remove(&searched) {
            // Two patterns may have the same translation.
            Some(known) => json!({"allOf": [known, schema]}),
            None => schema,
        };
        out.insert(searched, schema);
    }
    Ok(Value::Object(out))
}

fn searched(pattern: &str, path: &str, keyword: &str) -> Result<String, SchemaError> {
    for_validation(pattern).map_err(|error| pattern_error(error, path, keyword))
}

/// Error for a pattern of the schema at `path`.
pub(super) fn pattern_error(error: PatternError, path: &str, keyword: &str) -> SchemaError {
    match error {
        PatternError::Syntax { .. } => SchemaError::bad(path, keyword, &error.to_string()),
        PatternError::Unsupported { .. } => {
            SchemaError::new(path, keyword, SchemaFault::UnsupportedPattern(error.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::validator::validator;
    use super::*;

    #[test]
    fn patterns_are_translated_where_they_are_keywords() {
        let data = json!({"pattern": "("});
        let schema = json!({
            "properties": {"pattern": {"pattern": "."}, "patternProperties": {"not": {"pattern": "."}}},
            "patternProperties": {"[.]": {"minimum": 1}, "\\x2e": {"maximum": 2}},
            "enum": [data], "x-note": data, "x-other": {"pattern": "."},
        });
        let dot = r"[^\n\r\u{2028}\u{2029}]";
        let expected = json!({
            "properties": {"pattern": {"pattern": dot}, "patternProperties": {"not": {"pattern": dot}}},
            "patternProperties": {r"[\u{2e}]": {"minimum": 1}, r"\u{2e}": {"maximum": 2}},
            "enum": [data], "x-note": data, "x-other": {"pattern": dot},
        });
        assert_eq!(with_ecma_patterns(&schema).expect("patterns"), expected);
        let same = json!({"patternProperties": {"a/b": {"minimum": 1}, "a\\/b": {"maximum": 2}}});
        let same = validator(&same, true).expect("a schema");
        for (value, is_valid) in [(0, false), (1, true), (2, true), (3, false)] {
            assert_eq!(same.is_valid(&json!({"a/b": value})), is_valid, "{value}");
        }
        let error =
            validator(&json!({"anyOf": [{"not": {"pattern": "(?i)a"}}]}), true).expect_err("no pattern");
        assert_eq!((error.path.as_str(), error.keyword.as_str()), ("#/anyOf/0/not", "pattern"));
    }
}
