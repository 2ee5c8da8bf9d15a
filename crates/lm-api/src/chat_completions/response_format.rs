//! `response_format` of a request.

use lm_conversation::ResponseFormat;
use lm_processors::{gbnf_grammar, is_gbnf};
use serde_json::Value;

use super::output::OutputFields;
use crate::error::{ApiError, Result};
use crate::fields::shown;
use crate::request::FieldNames;

/// Reads `response_format`: `text` is `None`. The schema of `json_schema` may also be given without the
/// object around it, as in the Responses API.
///
/// ```
/// use lm_api::{ResponseFormat, response_format};
/// use serde_json::json;
///
/// assert_eq!(response_format(&json!({"type": "text"}))?, None);
/// let format = json!({"type": "json_schema", "json_schema": {"name": "age", "schema": {"type": "integer"}}});
/// assert_eq!(response_format(&format)?, Some(ResponseFormat::JsonSchema(json!({"type": "integer"}))));
/// # Ok::<(), lm_api::ApiError>(())
/// ```
///
/// # Errors
/// When the value is none of `text`, `json_object` and `json_schema`, or the schema is missing.
pub fn response_format(format: &Value) -> Result<Option<ResponseFormat>> {
    response_format_at(format, "response_format")
}

/// [`response_format`] of a field of another name.
pub(crate) fn response_format_at(format: &Value, name: &str) -> Result<Option<ResponseFormat>> {
    match format.get("type").and_then(Value::as_str) {
        Some("text") => Ok(None),
        Some("json_object") => match format.get("schema").filter(|schema| !schema.is_null()) {
            Some(schema) => Ok(Some(ResponseFormat::JsonSchema(schema.clone()))),
            None => Ok(Some(ResponseFormat::JsonObject)),
        },
        Some("json_schema") => {
            let schema = format.pointer("/json_schema/schema").or_else(|| format.get("schema"));
            let missing = || ApiError::invalid_param(format!("{name}.json_schema"), "`schema` is missing");
            let schema = schema.filter(|schema| !schema.is_null()).ok_or_else(missing)?;
            Ok(Some(ResponseFormat::JsonSchema(schema.clone())))
        }
        _ => {
            let expected = r#"a `type` of "text", "json_object" or "json_schema""#;
            Err(ApiError::unexpected(name, shown(format), expected))
        }
    }
}

/// Kinds of formats in `structured_outputs` of vLLM's extensions, with their paths.
const STRUCTURED: [(&str, &str); 5] = [
    ("json", "structured_outputs.json"),
    ("json_object", "structured_outputs.json_object"),
    ("regex", "structured_outputs.regex"),
    ("choice", "structured_outputs.choice"),
    ("grammar", "structured_outputs.grammar"),
];

/// Reads the format of the answer: `response_format`, one of vLLM's extensions `structured_outputs`,
/// `guided_json`, `guided_regex`, `guided_choice` and `guided_grammar`, or llama.cpp's `json_schema` and
/// `grammar`. Returns the names of the fields with
/// that of the format, too.
pub(crate) fn answer_format(
    fields: &mut OutputFields,
    names: FieldNames,
) -> Result<(Option<ResponseFormat>, FieldNames)> {
    let mut formats = Vec::new();
    if let Some(format) = fields.response_format.take() {
        formats.extend(response_format(&format)?.map(|format| (names.format, format)));
    }
    for (kind, name, value) in [
        ("json", "guided_json", &mut fields.guided_json),
        ("json", "json_schema", &mut fields.json_schema),
        ("regex", "guided_regex", &mut fields.guided_regex),
        ("choice", "guided_choice", &mut fields.guided_choice),
        ("grammar", "guided_grammar", &mut fields.guided_grammar),
        ("grammar", "grammar", &mut fields.grammar),
    ] {
        let value = value.take().filter(|value| kind != "grammar" || *value != "");
        if let Some(value) = value {
            formats.push((name, constraint(kind, value, name)?));
        }
    }
    if let Some(structured) = fields.structured_outputs.take() {
        for (kind, value) in structured.into_iter().filter(|(_, value)| !value.is_null() && *value != false) {
            let known = STRUCTURED.iter().find(|(known, _)| *known == kind);
            let (_, name) = known.ok_or_else(|| unknown_kind(&kind))?;
            formats.push((name, constraint(&kind, value, name)?));
        }
    }
    match &formats[..] {
        [(first, _), (second, _), ..] => {
            let message = format!("`{first}` and `{second}` are both given, expected one format");
            Err(ApiError::invalid_param(*second, message))
        }
        _ => {
            Ok(formats.pop().map_or((None, names), |(format, it)| (Some(it), FieldNames { format, ..names })))
        }
    }
}

fn unknown_kind(kind: &str) -> ApiError {
    let known = STRUCTURED.map(|(known, _)| known).join(", ");
    let message = format!("`structured_outputs` has {}, expected one of {known}", shown(&kind.into()));
    ApiError::invalid_param(format!("structured_outputs.{kind}"), message)
}

/// Reads a format by the kind that vLLM names it by.
fn constraint(kind: &str, value: Value, name: &str) -> Result<ResponseFormat> {
    let wrong = |expected: &str, got: &Value| ApiError::unexpected(name, shown(got), expected);
    match (kind, value) {
        ("json", schema @ (Value::Object(_) | Value::Bool(_))) => Ok(ResponseFormat::JsonSchema(schema)),
        ("json", Value::String(text)) => match serde_json::from_str(&text) {
            Ok(schema) => Ok(ResponseFormat::JsonSchema(schema)),
            Err(_) => Err(wrong("a JSON schema", &text.into())),
        },
        ("json", other) => Err(wrong("a JSON schema", &other)),
        ("json_object", Value::Bool(true)) => Ok(ResponseFormat::JsonObject),
        ("regex", Value::String(pattern)) => Ok(ResponseFormat::Regex(pattern)),
        ("regex", other) => Err(wrong("a regular expression", &other)),
        ("grammar", Value::String(grammar)) if is_gbnf(&grammar) => match gbnf_grammar(&grammar) {
            Ok(grammar) => Ok(ResponseFormat::Lark(grammar.lark)),
            Err(error) => Err(ApiError::invalid_param(name, error.to_string())),
        },
        ("grammar", Value::String(grammar)) => Ok(ResponseFormat::Lark(grammar)),
        ("grammar", other) => Err(wrong("a grammar in GBNF or llguidance's Lark dialect", &other)),
        ("choice", Value::Array(choices)) if !choices.is_empty() && choices.iter().all(Value::is_string) => {
            let texts = choices.iter().filter_map(Value::as_str).map(str::to_owned);
            Ok(ResponseFormat::Choice(texts.collect()))
        }
        ("choice", other) => Err(wrong("an array of texts", &other)),
        (_, other) => Err(wrong("true", &other)),
    }
}
