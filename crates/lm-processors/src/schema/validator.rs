//! Validators of finished values, in which patterns are those of ECMA-262 and divisors are exact.

use std::collections::HashSet;

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError, ValidationOptions, ValidatorMap};
use lm_template::Value;
use serde_json::{Map, Number, json};

use super::document::escaped;
use super::ecma::{PatternError, for_validation};
use super::error::{SchemaError, SchemaFault};
use super::evaluations::check_evaluations;
use super::keywords::{MAPS, holds_schemas};
use super::schema_validator::SchemaValidator;

/// Maximum nesting depth of lists and objects in a schema.
const MAX_DEPTH: usize = 200;
/// Members of a schema that are data.
const DATA: &[&str] = &["const", "default", "enum", "example", "examples"];

/// Builds a validator of values by `schema`; `formats` is true if `format` restricts them. Patterns have the
/// meaning that ECMA-262 gives them, and `multipleOf` is exact for all numbers. References are resolved
/// within the document.
///
/// # Errors
/// If it is not a schema, a pattern is none of ECMA-262 or cannot be validated by its rules, or a value may
/// need more than 100,000 applications of subschemas.
///
/// ```
/// let schema = serde_json::json!({"type": "string", "pattern": r"^\w+\b.$"});
/// let validator = lm_processors::validator(&schema, true)?;
/// assert!(validator.is_valid(&"word!".into()));
/// assert!(!validator.is_valid(&"größe!".into()), "`\\w` is ASCII");
/// # Ok::<(), lm_processors::SchemaError>(())
/// ```
pub fn validator(schema: &Value, formats: bool) -> Result<SchemaValidator, SchemaError> {
    let schema = with_ecma_patterns(schema)?;
    let validator = options(formats).build(&schema).map_err(|error| invalid(&error))?;
    check_evaluations(&schema)?;
    Ok(SchemaValidator::new(validator, schema))
}

/// Validators of all schemas in a document by their JSON pointer.
pub(super) fn validators(schema: &Value) -> Option<ValidatorMap> {
    let schema = with_ecma_patterns(schema).ok()?;
    check_evaluations(&schema).ok()?;
    options(true).build_map(&schema).ok()
}

fn options<'a>(formats: bool) -> ValidationOptions<'a> {
    jsonschema::options().offline().should_validate_formats(formats).with_keyword("multipleOf", divisor)
}

fn invalid(error: &ValidationError<'_>) -> SchemaError {
    SchemaError::bad(&format!("#{}", error.instance_path()), "", &error.to_string())
}

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

/// The keyword `multipleOf`.
struct Divisor(Number);

impl<'i> Keyword<'i> for Divisor {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        match Keyword::is_valid(self, value) {
            true => Ok(()),
            false => Err(ValidationError::custom(format!("{value} is not a multiple of {}", self.0))),
        }
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        value.as_number().is_none_or(|number| is_multiple(number, &self.0).unwrap_or(false))
    }
}

#[allow(clippy::unnecessary_wraps, reason = "the signature of a keyword's factory")]
fn divisor<'a>(
    _: &'a Map<String, Value>,
    value: &'a Value,
    _: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    // The meta-schema has checked that it is a number above 0.
    Ok(Box::new(Divisor(value.as_number().cloned().unwrap_or_else(|| Number::from(1)))))
}

/// Returns true if `number` is a multiple of `divisor` as decimals; `None` if one of them is not in decimal
/// notation.
fn is_multiple(number: &Number, divisor: &Number) -> Option<bool> {
    let ((value, scale), (step, step_scale)) = (decimal(number)?, decimal(divisor)?);
    if value == 0 || step == 0 {
        return Some(value == 0);
    }
    let places = scale - step_scale;
    if places >= 0 {
        let times_ten = |rest: u128, _| rest * 10 % step;
        return Some((0..places).fold(value % step, times_ten) == 0);
    }
    // A step beyond 128 bits divides no value of 64.
    let step = u32::try_from(-places).ok().and_then(|places| 10_u128.checked_pow(places)?.checked_mul(step));
    Some(step.is_some_and(|step| value % step == 0))
}

/// Digits of a number without its sign, and the power of ten that they are multiplied by.
fn decimal(number: &Number) -> Option<(u128, i32)> {
    let text = number.to_string();
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{}{fraction}", whole.trim_start_matches('-'));
    Some((digits.parse().ok()?, exponent.parse::<i32>().ok()? - i32::try_from(fraction.len()).ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn multiples_are_exact() {
        let number = |text: &str| text.parse::<Number>().expect("a number");
        let cases = [
            ("9007199254740993", "9007199254740993", true),
            ("9007199254740992", "9007199254740993", false),
            ("18014398509481986", "9007199254740993", true),
            ("-9223372036854775807", "7", true),
            ("18446744073709551615", "3", true),
            ("18446744073709551614", "3", false),
            ("0", "1e300", true),
            ("5", "1e300", false),
            ("1e300", "3", false),
            ("3e300", "3", true),
            ("0.3", "0.1", true),
            ("1e-300", "1e-301", true),
            ("1e300", "1e-300", true),
            ("0.35", "0.1", false),
            ("5.0", "5", true),
        ];
        for (value, divisor, expected) in cases {
            assert_eq!(is_multiple(&number(value), &number(divisor)), Some(expected), "{value} by {divisor}");
        }
    }

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
