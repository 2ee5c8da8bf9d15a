//! Validators of finished values, in bounded time. Patterns are those of ECMA-262, and divisors are exact.

use jsonschema::{ValidationError, ValidationOptions, Validator, ValidatorMap};
use lm_template::Value;

use super::ecma_patterns::with_ecma_patterns;
use super::error::SchemaError;
use super::evaluations::{check_evaluations, is_cheap};
use super::multiple_of::divisor;

/// Maximum number of schemas that are applied to find the places of errors.
const MAX_FOR_ERRORS: u64 = 10_000;

/// Validator of values by a schema; see [`validator`](validator()).
#[derive(Debug)]
pub struct SchemaValidator {
    validator: Validator,
    schema: Value,
}

impl SchemaValidator {
    /// Returns true if the schema allows the value.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }

    /// Returns the errors of a value, which are none if the schema allows it.
    ///
    /// The places of errors are searched for in all alternatives: in a recursive schema, their number grows
    /// exponentially with the depth of the value. Beyond 10,000 applied schemas the result is one error
    /// without a place.
    pub fn errors<'v>(&'v self, value: &'v Value) -> Vec<ValidationError<'v>> {
        if self.is_valid(value) {
            return Vec::new();
        }
        if is_cheap(&self.schema, value, MAX_FOR_ERRORS) {
            return self.validator.iter_errors(value).collect();
        }
        vec![ValidationError::custom("the value does not fit the schema")]
    }
}

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
    Ok(SchemaValidator { validator, schema })
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Places of the errors of a value.
    fn places(schema: &Value, value: &Value) -> Vec<String> {
        let validator = validator(schema, false).expect("a schema");
        let errors = validator.errors(value);
        assert_eq!(errors.is_empty(), validator.is_valid(value));
        errors.iter().map(|error| error.instance_path().to_string()).collect()
    }

    #[test]
    fn errors_have_pointers() {
        let tree = json!({"properties": {"n": {"type": "integer"}, "all": {"items": {"$ref": "#"}}}});
        assert_eq!(places(&tree, &json!({"n": 1, "all": [{"n": 2}]})), [""; 0]);
        assert_eq!(places(&tree, &json!({"n": "1", "all": [{"n": "2"}]})), ["/n", "/all/0/n"]);
        let deep = (0..100).fold(json!({"n": "1"}), |value, _| json!({"all": [value]}));
        assert_eq!(places(&tree, &deep), ["/all/0".repeat(100) + "/n"]);
    }

    #[test]
    fn recursive_union_errors_are_found_in_bounded_time() {
        let kind = |kind| {
            let properties = json!({"kind": {"const": kind}, "of": {"$ref": "#"}});
            json!({"properties": properties, "required": ["kind", "of"]})
        };
        let kinds = (0..10).map(kind).chain([json!({"type": "integer"})]);
        let expression = json!({"type": ["object", "integer"], "anyOf": kinds.collect::<Vec<_>>()});
        let value = |depth, leaf| (0..depth).fold(leaf, |value, _| json!({"kind": 3, "of": value}));
        assert_eq!(places(&expression, &value(100, json!(1))), [""; 0]);
        assert_eq!(places(&expression, &value(100, json!("1"))), [""]);
        let doubled = json!({"properties": {"of": {"$ref": "#"}}});
        let doubled = json!({"type": "object", "allOf": [doubled, doubled]});
        assert_eq!(places(&doubled, &value(100, json!({}))), [""; 0]);
        assert_eq!(places(&doubled, &value(100, json!(1))), [""]);
        assert_eq!(places(&doubled, &json!({"of": {"of": 1}})), ["/of/of"; 4]);
    }
}
