//! Fields of request bodies, read as structs.

use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error as _, IntoDeserializer};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::error::{ApiError, Result};
use crate::limits::{Limits, at_most};
use crate::request_body::RequestBody;

/// Fields of a request body, without those that are null: they are absent.
#[derive(Debug)]
pub struct Fields(Map<String, Value>);

impl Fields {
    /// Opens a body.
    ///
    /// # Errors
    /// When it is not an object, or sets an unsupported field.
    pub fn open(value: Value, body: &RequestBody) -> Result<Self> {
        let mut values = match value {
            Value::Object(values) => values,
            other => {
                let message = format!("the request is {}, expected an object", json_type(&other));
                return Err(ApiError::invalid_request(message));
            }
        };
        values.retain(|_, value| !value.is_null());
        body.unsupported_in(&values).map_or(Ok(Self(values)), |name| Err(unsupported(name)))
    }

    /// Values of the fields, by name.
    pub(crate) fn values(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Reads a group of fields; the values stay for other groups.
    ///
    /// # Errors
    /// When a field is missing or has another type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        serde_path_to_error::deserialize(&self.0).map_err(in_field)
    }

    /// Reads a last group of fields, without copies of its values.
    ///
    /// # Errors
    /// As [`Fields::read`].
    pub fn into_group<T: DeserializeOwned>(self) -> Result<T> {
        serde_path_to_error::deserialize(self.0).map_err(in_field)
    }
}

/// Error of a group of fields. What is in the value of a field is named in the message alone.
fn in_field(error: serde_path_to_error::Error<serde_json::Error>) -> ApiError {
    let (path, message) = (error.path().to_string(), error.inner().to_string());
    match message.strip_prefix("missing field `") {
        Some(name) => ApiError::missing(name.trim_end_matches('`')),
        None => {
            let param = path.split(['.', '[']).next().unwrap_or_default();
            ApiError::invalid_param(param, format!("`{path}`: {}", in_words(&message)))
        }
    }
}

/// Reads a field of one of the words that an enum has: alone, it would be read from an object, too.
pub(crate) fn word<'de, D, T>(word: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let word = Option::<String>::deserialize(word)?;
    word.map(|word| T::deserialize(word.into_deserializer())).transpose()
}

/// Reads a token limit of at least 1; -1 is no limit.
pub(crate) fn token_limit<'de, D: Deserializer<'de>>(limit: D) -> Result<Option<NonZeroUsize>, D::Error> {
    match Option::<Value>::deserialize(limit)? {
        None => Ok(None),
        Some(limit) if limit == -1 => Ok(None),
        Some(limit) => {
            let read = NonZeroUsize::deserialize(&limit);
            let expected = "expected an integer of at least 1, or -1 for no limit";
            read.map(Some).map_err(|_| D::Error::custom(format!("{expected}, got {}", shown(&limit))))
        }
    }
}

/// Reads llama.cpp's token limit: as [`token_limit`], and -2 is the rest of the context, which is no limit.
pub(crate) fn predicted<'de, D: Deserializer<'de>>(limit: D) -> Result<Option<NonZeroUsize>, D::Error> {
    let limit = Value::deserialize(limit)?;
    if limit == -2 {
        return Ok(None);
    }
    token_limit(limit).map_err(D::Error::custom)
}

/// Value of a field in an object, which is absent if it is null.
pub(crate) fn nested(object: Option<Map<String, Value>>, name: &str) -> Option<Value> {
    object?.shift_remove(name).filter(|value| !value.is_null())
}

fn unsupported(name: &str) -> ApiError {
    let instead = if name.starts_with("function") { "; `tools` and `tool_choice` are" } else { "" };
    let error = ApiError::invalid_param(name, format!("`{name}` is not supported{instead}"));
    error.with_code("unsupported_parameter")
}

/// Replaces the Rust type that serde names as the expected one.
fn in_words(message: &str) -> String {
    const TYPES: [(&str, &str); 7] = [
        ("a nonzero usize", "an integer of at least 1"),
        ("usize", "an integer of at least 0"),
        ("u32", "an integer of at least 0"),
        ("i64", "an integer"),
        ("f32", "a number"),
        ("a sequence", "an array"),
        ("a map", "an object"),
    ];
    let parts = message.rsplit_once(", expected ");
    let words = parts.and_then(|(got, ty)| Some((got, TYPES.iter().find(|(known, _)| *known == ty)?.1)));
    words.map_or_else(|| message.to_owned(), |(got, words)| format!("{got}, expected {words}"))
}

/// Stop sequences: one, or several.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected text or an array of texts")]
pub(crate) enum StopSequences {
    One(#[schemars(length(min = 1))] String),
    Several(#[schemars(inner(length(min = 1)))] Vec<String>),
}

impl StopSequences {
    /// The sequences of the field `name`.
    pub fn read(stop: Option<Self>, name: &str, limits: &Limits) -> Result<Vec<String>> {
        let stop = match stop {
            None => Vec::new(),
            Some(Self::One(text)) => vec![text],
            Some(Self::Several(texts)) => texts,
        };
        at_most(name, stop.len(), limits.stop_sequences, "sequences")?;
        for text in &stop {
            if text.is_empty() {
                return Err(ApiError::invalid_param(name, "a stop sequence is empty"));
            }
            at_most(name, text.len(), limits.stop_bytes, "bytes in a sequence")?;
        }
        Ok(stop)
    }
}

/// Checks a number.
pub(crate) fn in_range(name: &str, got: usize, least: usize, most: usize) -> Result<()> {
    if (least..=most).contains(&got) {
        return Ok(());
    }
    let expected =
        if most == usize::MAX { format!("at least {least}") } else { format!("{least} to {most}") };
    Err(ApiError::unexpected(name, got, expected))
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
    use serde_json::json;

    use super::*;

    const ONE: RequestBody =
        RequestBody { name: "One", groups: &[], unsupported: &[&[("functions", &["[]"])]], example: "{}" };

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
    fn type_errors_name_json_types() {
        #[derive(Debug, Deserialize)]
        struct One<T> {
            #[expect(dead_code, reason = "it is never read")]
            n: T,
        }
        fn message<T: DeserializeOwned + std::fmt::Debug>(value: Value) -> String {
            let fields = Fields::open(json!({"n": value}), &ONE).expect("an object");
            fields.read::<One<T>>().expect_err("is refused").message
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

    #[test]
    fn words_are_strings_and_places_in_a_value_are_in_the_message() {
        #[derive(Debug, Deserialize)]
        enum Word {
            A,
        }
        #[derive(Debug, Deserialize)]
        struct Two {
            #[serde(default, deserialize_with = "word")]
            a: Option<Word>,
            b: Option<Vec<usize>>,
        }
        let read = |value: Value| Fields::open(value, &ONE).and_then(|fields| fields.read::<Two>());
        assert!(matches!(read(json!({"a": "A", "b": null})), Ok(Two { a: Some(Word::A), b: None })));
        for (value, param, start) in [
            (json!({"a": {"A": null}}), "a", "`a`: invalid type: map, expected a string"),
            (json!({"b": [1, -1]}), "b", "`b[1]`: invalid value: integer `-1`"),
        ] {
            let error = read(value).expect_err("is refused");
            assert_eq!(error.param.as_deref(), Some(param));
            assert!(error.message.starts_with(start), "{error}");
        }
    }
}
