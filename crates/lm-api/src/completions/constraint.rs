//! Constraint of a completion in a given format.

use lm_conversation::{Engine, Error, ResponseFormat};
use lm_processors::{Error as Processor, Layout, json_grammar};
use lm_session::{CompiledConstraint, ConstraintSpec};
use serde_json::{Value, json};

use crate::error::{ApiError, Result};
use crate::request::ChatRequest;

/// Compiles the format of a request's texts, if it has one.
///
/// # Errors
/// When it has no grammar, or a keyword that its grammar does not enforce: nothing validates the finished
/// text.
pub(super) fn of(options: &ChatRequest, engine: &Engine) -> Result<Option<CompiledConstraint>> {
    let Some(format) = &options.turn.response_format else { return Ok(None) };
    let spec = match format {
        ResponseFormat::JsonObject => json_spec(options, &json!({"type": "object"}))?,
        ResponseFormat::JsonSchema(schema) => json_spec(options, schema)?,
        ResponseFormat::Regex(pattern) => ConstraintSpec::Regex(pattern.clone()),
        ResponseFormat::Choice(texts) => ConstraintSpec::Choice(texts.clone()),
        ResponseFormat::Lark(text) => ConstraintSpec::Lark { text: text.clone(), markers: Vec::new() },
    };
    engine.compile(&spec).map(Some).map_err(|error| options.api_error(&error.into()))
}

fn json_spec(options: &ChatRequest, schema: &Value) -> Result<ConstraintSpec> {
    let read = json_grammar(schema, Layout::Exact);
    let read = read.map_err(|error| options.api_error(&Error::from(Processor::from(error))))?;
    if let Some(keyword) = read.unenforced.first() {
        let message = format!(
            "`{}` at {} of the schema has no grammar, and completions are not validated; chat completions are",
            keyword.keyword, keyword.path
        );
        return Err(ApiError::invalid_param(options.names.format, message).with_code("invalid_schema"));
    }
    Ok(ConstraintSpec::Lark { text: read.grammar.lark, markers: read.grammar.markers })
}
