//! From a call's JSON arguments to a function's values, and from its result to JSON.

use crate::ToolError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fmt::Display;

/// The arguments of one call, taken out one by one; `#[tool]` writes the calls.
#[derive(Debug)]
pub struct Given {
    values: Map<String, Value>,
}

impl Given {
    /// # Errors
    /// When an argument is none of `known`: it would get lost, and the model would think that it had its effect.
    pub fn new(values: Map<String, Value>, known: &[&str]) -> Result<Self, ToolError> {
        match values.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(Self { values }),
            Some(name) => Err(ToolError::UnknownArgument {
                argument: name.clone(),
                known: known.iter().map(|&name| name.to_owned()).collect(),
            }),
        }
    }

    /// Takes an argument that must be there.
    ///
    /// # Errors
    /// When it is missing, or no `T`.
    pub fn required<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, ToolError> {
        let missing = || ToolError::missing(name);
        read(name, self.values.remove(name).ok_or_else(missing)?)
    }

    /// Takes an argument that may be left out, or be `null`.
    ///
    /// # Errors
    /// When it is there and no `T`.
    pub fn optional<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, ToolError> {
        match self.values.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(name, value).map(Some),
        }
    }
}

/// The result of a function that cannot fail.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn value(result: impl Serialize) -> Result<Value, ToolError> {
    serde_json::to_value(result).map_err(ToolError::failed)
}

/// The result of a function that can fail.
///
/// # Errors
/// The function's own, or when the result cannot be written as JSON.
pub fn result<T: Serialize, E: Display>(result: Result<T, E>) -> Result<Value, ToolError> {
    value(result.map_err(ToolError::failed)?)
}

/// JSON Schema counts `3.0` as an integer, serde does not: the schema's word holds.
fn read<T: DeserializeOwned>(name: &str, value: Value) -> Result<T, ToolError> {
    let whole = whole_number(&value);
    serde_json::from_value(value)
        .or_else(|error| whole.map_or(Err(error), serde_json::from_value))
        .map_err(|error| ToolError::invalid(name, error))
}

fn whole_number(value: &Value) -> Option<Value> {
    /// Up to here a float holds every integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let number = value.as_number().filter(|number| number.is_f64())?.as_f64()?;
    (number.fract() == 0.0 && number.abs() <= EXACT).then(|| Value::from(number as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn given(values: Value) -> Given {
        let Value::Object(values) = values else { panic!("arguments are an object") };
        Given::new(values, &["a", "b"]).expect("known arguments")
    }

    #[test]
    fn values_are_read_as_their_types() {
        let mut arguments = given(json!({"a": 3, "b": ["x"]}));
        assert_eq!(arguments.required("a"), Ok(3_u8));
        assert_eq!(arguments.required("b"), Ok(vec!["x".to_owned()]));
        assert_eq!(arguments.required::<u8>("a"), Err(ToolError::missing("a")), "a value is taken once");
    }

    #[test]
    fn an_optional_argument_may_be_missing_or_null() {
        let mut arguments = given(json!({"a": null}));
        assert_eq!(arguments.optional::<i64>("a"), Ok(None));
        assert_eq!(arguments.optional::<i64>("b"), Ok(None));
        assert_eq!(given(json!({"a": 1})).optional("a"), Ok(Some(1)));
    }

    #[test]
    fn a_whole_float_is_an_integer_as_json_schema_has_it() {
        assert_eq!(given(json!({"a": 3.0})).required("a"), Ok(3_i64));
        assert_eq!(given(json!({"a": -0.0})).required("a"), Ok(0_i64));
        assert!(given(json!({"a": 3.5})).required::<i64>("a").is_err());
        assert!(given(json!({"a": 1e300})).required::<i64>("a").is_err());
        assert!(given(json!({"a": -3.0})).required::<u8>("a").is_err());
    }

    #[test]
    fn a_wrong_value_names_the_argument_and_what_was_expected() {
        let error = given(json!({"a": "three"})).required::<i64>("a").expect_err("a text is no integer");
        assert_eq!(error.to_string(), "argument `a`: invalid type: string \"three\", expected i64");
    }

    #[test]
    fn an_unknown_argument_names_those_that_there_are() {
        let error = Given::new(Map::from_iter([("city".to_owned(), json!("Paris"))]), &["location", "unit"]);
        let error = error.expect_err("no such argument");
        assert_eq!(error.to_string(), "there is no argument `city`, the arguments are: location, unit");
    }

    #[test]
    fn results_become_values_or_what_the_error_says() {
        assert_eq!(value(15), Ok(json!(15)));
        assert_eq!(result::<_, String>(Ok("x")), Ok(json!("x")));
        let error = anyhow::anyhow!("no route").context("request failed");
        assert_eq!(result::<i64, _>(Err(error)), Err(ToolError::failed("request failed: no route")));
    }
}
