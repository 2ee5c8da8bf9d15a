//! JSON schemas as strangers write them, made into schemas that have a grammar.

mod disjoint;
mod document;
mod endless;
mod exact;
mod keywords;
mod listed;
mod normalize;
mod objects;
mod pattern;
mod references;

use lm_template::Value;

use super::error::SchemaError;
pub(crate) use document::escaped as escaped_pointer;
pub(crate) use listed::same_value;
use normalize::Normalizer;
pub(crate) use pattern::{escaped as escaped_regex, full_match};

/// A keyword that the grammar does not enforce; the finished value is to be validated instead.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Relaxed {
    /// The tool whose parameters they are; none for a response format.
    pub tool: Option<String>,
    /// Where in the schema, as a JSON pointer in URI form: `#/properties/a`.
    pub path: String,
    /// The keyword.
    pub keyword: String,
}

/// How what a schema leaves open is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reading {
    /// As JSON Schema says: what is not forbidden is allowed.
    #[default]
    Open,
    /// As the declaration of a tool means it: an object that lists its properties has no others, unless it says so, and what
    /// has properties is an object.
    ToolParameters,
}

/// A schema that has a grammar, and allows all that `schema` allows (under `reading`), with a list of the keywords it does not
/// enforce. In the result every reference leads to `#/$defs/…`, `oneOf` is `anyOf`, and annotations are gone.
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
/// When it is no schema, leads out of the document, or is too large.
pub fn relax(schema: &Value, reading: Reading) -> Result<(Value, Vec<Relaxed>), SchemaError> {
    Normalizer::new(schema, reading).run(schema)
}

/// The name of a value's type; integers are numbers.
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
