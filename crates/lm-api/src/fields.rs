//! Fields of a JSON object, taken by name.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{ApiError, Result};
use crate::limits::{Limits, at_most};
use crate::request_body::{BodyField, RequestBody};

/// Fields of a request body, taken by the names that its [`RequestBody`] has.
#[derive(Debug)]
pub struct Fields {
    body: &'static RequestBody,
    values: Map<String, Value>,
}

impl Fields {
    /// Opens a body.
    ///
    /// # Errors
    /// When it is not an object, or sets an unsupported field.
    pub fn open(value: Value, body: &'static RequestBody) -> Result<Self> {
        let values = match value {
            Value::Object(values) => values,
            other => {
                let message = format!("the request is {}, expected an object", json_type(&other));
                return Err(ApiError::invalid_request(message));
            }
        };
        let asks = |field: &&BodyField| values.get(field.name()).is_some_and(|value| field.refuses(value));
        match body.fields().find(asks) {
            Some(field) => Err(unsupported(field.name())),
            None => Ok(Self { body, values }),
        }
    }

    /// Value of a field, which stays; `None` if it is absent or null.
    pub(crate) fn peek(&self, name: &str) -> Option<&Value> {
        debug_assert!(self.is_known(name), "`{name}` is not in the table of {}", self.body.name);
        self.values.get(name).filter(|value| !value.is_null())
    }

    /// Takes a field; `None` if it is absent or null.
    ///
    /// # Panics
    /// In debug builds, when the [`RequestBody`] has no such field.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        debug_assert!(self.is_known(name), "`{name}` is not in the table of {}", self.body.name);
        self.values.shift_remove(name).filter(|value| !value.is_null())
    }

    /// Takes and converts a field, if it is present and not null.
    ///
    /// # Errors
    /// When the value has another type.
    ///
    /// # Panics
    /// As [`Fields::take`].
    pub fn get<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>> {
        let convert = |value| serde_json::from_value(value);
        let converted = self.take(name).map(convert).transpose();
        converted.map_err(|error| {
            ApiError::invalid_param(name, format!("`{name}`: {}", in_words(&error.to_string())))
        })
    }

    /// Takes and converts a field that a body needs.
    ///
    /// # Errors
    /// When it is absent or null, or has another type.
    ///
    /// # Panics
    /// As [`Fields::take`].
    pub fn required<T: DeserializeOwned>(&mut self, name: &str) -> Result<T> {
        self.get(name)?.ok_or_else(|| missing(name))
    }

    /// Gives a field another name.
    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        if let Some(value) = self.take(from) {
            self.values.insert(to.to_owned(), value);
        }
    }

    fn is_known(&self, name: &str) -> bool {
        self.body.fields().any(|field| field.name() == name)
    }
}

/// Error of a field that is missing.
pub(crate) fn missing(name: &str) -> ApiError {
    ApiError::invalid_param(name, format!("`{name}` is missing"))
}

fn unsupported(name: &str) -> ApiError {
    let instead = if name.starts_with("function") { "; `tools` and `tool_choice` are" } else { "" };
    let error = ApiError::invalid_param(name, format!("`{name}` is not supported{instead}"));
    error.with_code("unsupported_parameter")
}

/// Replaces the Rust type that serde names as the expected one.
fn in_words(message: &str) -> String {
    const TYPES: [(&str, &str); 9] = [
        ("a nonzero usize", "an integer of at least 1"),
        ("usize", "an integer of at least 0"),
        ("u64", "an integer of at least 0"),
        ("u32", "an integer of at least 0"),
        ("i64", "an integer"),
        ("f32", "a number"),
        ("f64", "a number"),
        ("a sequence", "an array"),
        ("a map", "an object"),
    ];
    let parts = message.rsplit_once(", expected ");
    let words = parts.and_then(|(got, ty)| Some((got, TYPES.iter().find(|(known, _)| *known == ty)?.1)));
    words.map_or_else(|| message.to_owned(), |(got, words)| format!("{got}, expected {words}"))
}

/// Takes a field of stop sequences: text, or an array of texts.
pub(crate) fn stop_sequences(fields: &mut Fields, name: &str, limits: &Limits) -> Result<Vec<String>> {
    let stop = match fields.take(name) {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(texts)) => {
            at_most(name, texts.len(), limits.stop_sequences, "sequences")?;
            let texts = texts.into_iter().map(|text| match text {
                Value::String(text) => Ok(text),
                other => Err(ApiError::invalid_param(
                    name,
                    format!("`{name}` has {}, expected text", shown(&other)),
                )),
            });
            texts.collect::<Result<_>>()?
        }
        None => Vec::new(),
        Some(other) => {
            let message = format!("`{name}` is {}, expected text or an array of texts", shown(&other));
            return Err(ApiError::invalid_param(name, message));
        }
    };
    for text in &stop {
        if text.is_empty() {
            return Err(ApiError::invalid_param(name, "a stop sequence is empty"));
        }
        at_most(name, text.len(), limits.stop_bytes, "bytes in a sequence")?;
    }
    Ok(stop)
}

/// Checks a number.
pub(crate) fn in_range(name: &str, got: usize, least: usize, most: usize) -> Result<()> {
    if (least..=most).contains(&got) {
        return Ok(());
    }
    let expected =
        if most == usize::MAX { format!("at least {least}") } else { format!("{least} to {most}") };
    Err(ApiError::invalid_param(name, format!("`{name}` is {got}, expected {expected}")))
}

/// Type of a JSON value, for messages.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// JSON text of a value for a message, truncated.
pub(crate) fn shown(value: &Value) -> String {
    const MAX_CHARS: usize = 100;
    let text = value.to_string();
    match text.char_indices().nth(MAX_CHARS) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use serde_json::json;

    use super::*;
    use crate::request_body::COUNT;

    const ONE: RequestBody = RequestBody {
        name: "One",
        fields: &[&[BodyField::new("n", COUNT, "A number."), BodyField::unsupported("functions", &["[]"])]],
        required: &[],
        example: "{}",
    };

    #[test]
    fn unsupported_fields_accept_only_neutral_values() {
        for value in [json!(null), json!([])] {
            Fields::open(json!({"functions": value}), &ONE).expect("asks for nothing");
        }
        let error = Fields::open(json!({"functions": [1]}), &ONE).expect_err("asks for something");
        assert_eq!(error.message, "`functions` is not supported; `tools` and `tool_choice` are");
        assert_eq!((error.param.as_deref(), error.code), (Some("functions"), Some("unsupported_parameter")));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "`m` is not in the table of One")]
    fn readers_accept_only_fields_of_the_table() {
        Fields::open(json!({}), &ONE).expect("an object").take("m");
    }

    #[test]
    fn type_errors_name_json_types() {
        fn message<T: DeserializeOwned + std::fmt::Debug>(value: Value) -> String {
            let mut fields = Fields::open(json!({"n": value}), &ONE).expect("an object");
            fields.get::<T>("n").expect_err("is refused").message
        }
        for (message, expected) in [
            (
                message::<NonZeroUsize>(json!(-1)),
                "`n`: invalid value: integer `-1`, expected an integer of at least 1",
            ),
            (
                message::<NonZeroUsize>(json!(0)),
                "`n`: invalid value: integer `0`, expected an integer of at least 1",
            ),
            (
                message::<usize>(json!(1.5)),
                "`n`: invalid type: floating point `1.5`, expected an integer of at least 0",
            ),
            (message::<i64>(json!("1")), "`n`: invalid type: string \"1\", expected an integer"),
            (message::<f32>(json!("1")), "`n`: invalid type: string \"1\", expected a number"),
            (message::<Vec<String>>(json!(1)), "`n`: invalid type: integer `1`, expected an array"),
            (message::<bool>(json!(1)), "`n`: invalid type: integer `1`, expected a boolean"),
        ] {
            assert_eq!(message, expected);
        }
    }
}
