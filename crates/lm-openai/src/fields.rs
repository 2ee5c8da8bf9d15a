//! Fields of a JSON object, taken by name.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{ApiError, Result};

/// Fields of a request body.
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// Opens a body.
    pub(crate) fn new(body: Value) -> Result<Self> {
        match body {
            Value::Object(fields) => Ok(Self(fields)),
            other => Err(ApiError::invalid_request(format!(
                "the request is {}, expected an object",
                json_type(&other)
            ))),
        }
    }

    /// Takes a field; `None` if it is absent or null.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    /// Takes and converts a field, if it is present and not null.
    pub(crate) fn get<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>> {
        let convert = |value| serde_json::from_value(value);
        let converted = self.take(name).map(convert).transpose();
        converted.map_err(|error| ApiError::invalid_param(name, format!("`{name}`: {error}")))
    }
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
