//! Fields of a JSON object, taken by name.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{ApiError, Result};
use crate::limits::{Limits, at_most};

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
        converted.map_err(|error| {
            ApiError::invalid_param(name, format!("`{name}`: {}", in_words(&error.to_string())))
        })
    }
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

    #[test]
    fn errors_of_types_name_no_type_of_rust() {
        fn message<T: DeserializeOwned + std::fmt::Debug>(value: Value) -> String {
            let mut fields = Fields::new(json!({"n": value})).expect("an object");
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
