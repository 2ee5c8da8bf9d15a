//! Validation of arguments against the declared schema, with error messages that a model can act on.

use crate::error::{Error, Result};
use crate::tool_error::{ToolError, ToolErrorKind};
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use lm_processors::{GrammarRequest, SchemaError, SchemaValidator, ToolChoice};
use lm_template::ToolSpec;
use serde_json::{Map, Value};

/// Dialect whose grammar is written for a check.
const DIALECT: &str = "hermes";

/// Maximum number of validation errors reported.
const MAX_ERRORS: usize = 5;

/// Maximum characters of one error message, since it may quote a long value.
const MAX_ERROR_CHARS: usize = 200;

/// Checks that a grammar can write calls of a tool: that some arguments match its parameters, and that these
/// are within the limits of grammars.
///
/// # Errors
/// [`Error::InvalidSchema`], with the place of the fault.
pub fn check_grammar(spec: &ToolSpec) -> Result<()> {
    let request = GrammarRequest {
        tools: std::slice::from_ref(spec),
        choice: ToolChoice::Required,
        ..GrammarRequest::default()
    };
    // The rules of arguments are the same in every dialect whose calls are JSON.
    let dialect = lm_processors::by_name(DIALECT).expect("a dialect of this name");
    match dialect.grammar(&request) {
        Err(lm_processors::Error::Schema(error)) => Err(invalid_schema(spec, &error)),
        _ => Ok(()),
    }
}

fn invalid_schema(spec: &ToolSpec, error: &SchemaError) -> Error {
    Error::InvalidSchema {
        tool: spec.name().to_owned(),
        path: error.path.trim_start_matches('#').to_owned(),
        message: shorten(&error.fault.to_string()),
    }
}

/// Compiled schema of a tool's arguments.
#[derive(Debug)]
pub(crate) struct ArgumentSchema {
    validator: SchemaValidator,
    parameters: Value,
}

impl ArgumentSchema {
    /// Compiles the parameters of a declaration; one without parameters accepts every object.
    pub(crate) fn compile(spec: &ToolSpec) -> Result<Self> {
        let parameters = match spec.parameters() {
            Value::Null => Value::Object(Map::new()),
            parameters => parameters.clone(),
        };
        match lm_processors::validator(&parameters, false) {
            Ok(validator) => Ok(Self { validator, parameters }),
            Err(error) => Err(invalid_schema(spec, &error)),
        }
    }

    /// The schema.
    pub(crate) fn parameters(&self) -> &Value {
        &self.parameters
    }

    /// Validates one call's arguments.
    ///
    /// # Errors
    /// Each invalid argument, and the expected value.
    pub(crate) fn check(&self, arguments: &Value) -> Result<(), ToolError> {
        let errors = self.validator.errors(arguments);
        let mut errors: Vec<ToolError> =
            errors.iter().take(MAX_ERRORS).map(|error| self.validation_error(error)).collect();
        match errors.len() {
            0 => Ok(()),
            1 => Err(errors.remove(0)),
            _ => {
                let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
                Err(ToolError::new(ToolErrorKind::InvalidArguments, lines.join("; ")))
            }
        }
    }

    fn validation_error(&self, error: &ValidationError<'_>) -> ToolError {
        let pointer = error.instance_path().to_string();
        let argument = pointer.trim_start_matches('/').replace('/', ".");
        match error.kind() {
            ValidationErrorKind::Required { property: Value::String(property) } => {
                let pointer = format!("{pointer}/{property}");
                let argument = pointer.trim_start_matches('/').replace('/', ".");
                ToolError::invalid(argument, format!("missing, expected {}", self.expected(&pointer)))
            }
            ValidationErrorKind::AdditionalProperties { unexpected } if argument.is_empty() => {
                let known = self.parameters["properties"].as_object();
                let known = known.map(|properties| properties.keys().cloned().collect()).unwrap_or_default();
                ToolError::UnknownArgument { argument: unexpected.join(", "), known }
            }
            ValidationErrorKind::Type { kind } => {
                let got = shorten(&error.instance().to_string());
                ToolError::invalid(argument, format!("expected {}, got {got}", types(kind)))
            }
            _ if argument.is_empty() => {
                ToolError::new(ToolErrorKind::InvalidArguments, shorten(&error.to_string()))
            }
            _ => ToolError::invalid(argument, shorten(&error.to_string())),
        }
    }

    /// The schema's description of a missing value, as far as it is reachable through plain `properties`.
    fn expected(&self, pointer: &str) -> String {
        let path = pointer.split('/').skip(1);
        let schema = path.fold(&self.parameters, |schema, name| &schema["properties"][name]);
        match (&schema["enum"], &schema["type"]) {
            (Value::Array(choices), _) => format!("one of {}", list(choices)),
            (_, Value::String(kind)) => kind.clone(),
            (_, Value::Array(kinds)) => list(kinds),
            _ => "a value".to_owned(),
        }
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => kind.to_string(),
        TypeKind::Multiple(kinds) => {
            kinds.iter().map(|kind| kind.to_string()).collect::<Vec<_>>().join(" or ")
        }
    }
}

fn list(values: &[Value]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_ERROR_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> ArgumentSchema {
        let parameters = json!({
            "type": "object",
            "properties": {
                "location": {"type": "string"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                "point": {"type": "object", "properties": {"x": {"type": ["number", "null"]}}, "required": ["x"]},
                "days": {"type": "integer", "minimum": 1},
            },
            "required": ["location"],
            "additionalProperties": false,
        });
        ArgumentSchema::compile(&ToolSpec::new("f", "F.", parameters)).expect("a valid schema")
    }

    fn error_text(arguments: Value) -> String {
        schema().check(&arguments).expect_err("arguments that do not fit").to_string()
    }

    #[test]
    fn fitting_arguments_pass() {
        assert_eq!(schema().check(&json!({"location": "Paris", "point": {"x": null}, "days": 2})), Ok(()));
    }

    #[test]
    fn errors_name_the_argument_and_what_was_expected() {
        for (arguments, expected) in [
            (json!({}), "argument `location`: missing, expected string"),
            (json!({"location": 5}), "argument `location`: expected string, got 5"),
            (
                json!({"location": "a", "unit": "kelvin"}),
                "argument `unit`: \"kelvin\" is not one of \"celsius\" or \"fahrenheit\"",
            ),
            (
                json!({"location": "a", "point": {}}),
                "argument `point.x`: missing, expected \"number\", \"null\"",
            ),
            (
                json!({"location": "a", "point": {"x": "b"}}),
                "argument `point.x`: expected null or number, got \"b\"",
            ),
            (json!({"location": "a", "days": 0}), "argument `days`: 0 is less than the minimum of 1"),
            (
                json!({"location": "a", "city": "b"}),
                "there is no argument `city`, the arguments are: location, unit, point, days",
            ),
            (
                json!({"location": 1, "days": "b"}),
                "argument `location`: expected string, got 1; argument `days`: expected integer, got \"b\"",
            ),
        ] {
            assert_eq!(error_text(arguments), expected);
        }
    }

    #[test]
    fn long_values_are_quoted_in_part() {
        let text = error_text(json!({"location": vec!["é"; 10_000]}));
        assert!(text.chars().count() < 2 * MAX_ERROR_CHARS, "{text}");
    }

    #[test]
    fn invalid_schema_names_the_tool_and_the_path() {
        let spec = ToolSpec::new("f", "F.", json!({"properties": {"a": {"type": "text"}}}));
        let error = ArgumentSchema::compile(&spec).expect_err("no such type").to_string();
        assert!(
            error.starts_with(
                "the parameters of tool `f` are not a valid JSON schema: at `/properties/a/type`"
            ),
            "{error}"
        );
    }

    #[test]
    fn external_references_are_rejected_without_network_access() {
        let spec = ToolSpec::new("f", "F.", json!({"$ref": "https://example.com/schema.json"}));
        assert!(matches!(ArgumentSchema::compile(&spec), Err(Error::InvalidSchema { .. })));
    }

    #[test]
    fn tool_without_parameters_takes_any_object() {
        let spec = ToolSpec::from_json(json!({"name": "f"})).expect("a declaration");
        let schema = ArgumentSchema::compile(&spec).expect("no schema is a schema");
        assert_eq!(schema.check(&json!({"a": 1})), Ok(()));
    }
}
