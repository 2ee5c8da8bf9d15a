//! Normalization of untrusted JSON schemas into schemas that can be expressed as a grammar.

mod disjoint;
mod document;
mod ecma;
mod endless;
mod exact;
mod keywords;
mod library;
mod listed;
mod look_around;
mod normalize;
mod objects;
mod pattern;
mod references;
mod shortest;

use lm_template::Value;

use super::error::SchemaError;
pub(crate) use document::escaped as escaped_pointer;
use library::leave_out_unsayable;
pub(crate) use listed::same_value;
use normalize::Normalizer;
pub(crate) use pattern::{escaped as escaped_regex, full_match, needs_escape};

/// A keyword that the grammar does not enforce; finished values must be validated instead.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Relaxed {
    /// Tool whose parameters the schema describes; `None` for a response format.
    pub tool: Option<String>,
    /// Location in the schema, as a JSON pointer in URI form: `#/properties/a`.
    pub path: String,
    /// The keyword.
    pub keyword: String,
}

/// Interpretation of what a schema leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reading {
    /// By the JSON Schema specification: what is not forbidden is allowed.
    #[default]
    Open,
    /// By the intent of a tool declaration: an object that lists its properties has no others unless it says so, and a
    /// schema with properties is an object.
    ToolParameters,
}

/// Normalizes a schema to one that can be expressed as a grammar and allows all values of `schema` (under `reading`);
/// also returns the keywords that it does not enforce. In the result, every reference points to `#/$defs/…`, `oneOf`
/// becomes `anyOf`, and annotations are removed.
///
/// ```
/// use lm_processors::{Reading, relax};
/// use serde_json::json;
///
/// let schema = json!({"type": "string", "title": "A word", "not": {"const": "no"}});
/// let (plain, relaxed) = relax(&schema, Reading::Open)?;
/// assert_eq!(plain, json!({"type": "string"}));
/// assert_eq!((relaxed[0].path.as_str(), relaxed[0].keyword.as_str()), ("#", "not"));
/// # Ok::<(), lm_processors::SchemaError>(())
/// ```
///
/// # Errors
/// If it is not a schema, refers outside the document, or is too large.
pub fn relax(schema: &Value, reading: Reading) -> Result<(Value, Vec<Relaxed>), SchemaError> {
    let (mut plain, mut relaxed) = normalized(schema, reading)?;
    for (path, keyword) in leave_out_unsayable(&mut plain) {
        relaxed.push(Relaxed { tool: None, path, keyword: keyword.to_owned() });
    }
    relaxed.sort_unstable();
    relaxed.dedup();
    Ok((plain, relaxed))
}

/// The same with keywords that the grammars of calls and answers enforce, and the grammar library's translator of schemas does not.
pub(crate) fn normalized(schema: &Value, reading: Reading) -> Result<(Value, Vec<Relaxed>), SchemaError> {
    Normalizer::new(schema, reading).run(schema)
}

/// Name of a value's type; integers are numbers.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
