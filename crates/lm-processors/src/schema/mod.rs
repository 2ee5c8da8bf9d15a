//! Normalization of untrusted JSON schemas into schemas that can be expressed as a grammar.

mod applied;
mod disjoint;
mod document;
mod ecma;
mod ecma_patterns;
mod enum_values;
mod error;
mod evaluations;
mod finiteness;
mod integer_range;
mod json_text;
mod keywords;
mod look_around;
mod multiple_of;
mod node;
mod normalize;
mod objects;
mod parts;
mod pattern;
mod references;
mod rust_regex;
mod shortest;
mod validator;

use std::collections::{BTreeMap, BTreeSet};

use lm_template::Value;

pub(crate) use document::escaped as escaped_pointer;
pub(crate) use enum_values::{listed, same_value};
pub use error::{SchemaError, SchemaFault};
pub(crate) use json_text::character as json_character;
use normalize::Normalizer;
pub(crate) use parts::{definition, definition_name, list, names_of_types, required, type_names};
pub(crate) use pattern::{escaped as escaped_regex, full_match, full_match_in_json, needs_escape};
pub use rust_regex::schema_pattern;
pub use validator::{SchemaValidator, validator};

/// A keyword that the grammar does not express: it is not enforced, and finished values must be validated
/// instead; or it is `enum` or `const`, and the grammar lacks the listed values that the model's syntax
/// cannot write.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct UnenforcedKeyword {
    /// Tool whose parameters the schema describes; `None` for a response format.
    pub tool: Option<String>,
    /// Location in the schema, as a JSON pointer in URI form: `#/properties/a`.
    pub path: String,
    /// The keyword.
    pub keyword: String,
}

/// Interpretation of what a schema leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Reading {
    /// As in the JSON Schema specification: allowed unless forbidden.
    #[default]
    Open,
    /// By the intent of a tool declaration: an object that lists its properties has no others unless it says
    /// so, and a schema with properties is an object.
    ToolParameters,
}

/// A schema that can be expressed as a grammar and allows all values of the original (under its reading).
/// Every reference points to `#/$defs/…`, `oneOf` is `anyOf`, and annotations are removed.
#[derive(Debug)]
pub(crate) struct Normalized<'a> {
    document: &'a Value,
    pub(crate) schema: Value,
    /// Keywords of the original that the schema lacks.
    pub(crate) unenforced: BTreeSet<UnenforcedKeyword>,
    /// Place in the document of each definition, by name.
    places: BTreeMap<String, String>,
}

impl Normalized<'_> {
    /// Translates keywords of the schema to those of the document, which has other names for definitions and
    /// combinations.
    pub(crate) fn in_document(
        &self,
        found: BTreeSet<UnenforcedKeyword>,
    ) -> impl Iterator<Item = UnenforcedKeyword> {
        found.into_iter().map(|UnenforcedKeyword { tool, path, keyword }| {
            let path = self.place(&path);
            let original = self.document.pointer(path.trim_start_matches('#'));
            let has = |keyword: &str| original.is_none_or(|schema| schema.get(keyword).is_some());
            let others: &[&str] = match keyword.as_str() {
                keyword if has(keyword) => &[],
                "allOf" | "anyOf" => &["oneOf", "$ref"],
                "enum" => &["const", "anyOf", "oneOf", "allOf", "$ref"],
                _ => &[],
            };
            let other = others.iter().find(|other| has(other));
            let keyword = other.map_or(keyword, |other| (*other).to_owned());
            UnenforcedKeyword { tool, path, keyword }
        })
    }

    /// Location in the document of a location in the schema.
    pub(crate) fn place(&self, path: &str) -> String {
        let name = path.strip_prefix("#/$defs/").map(|rest| rest.split('/').next().unwrap_or(rest));
        match name.and_then(|name| Some((name, self.places.get(name)?))) {
            Some((name, place)) => format!("{place}{}", &path["#/$defs/".len() + name.len()..]),
            None => path.to_owned(),
        }
    }
}

/// Normalizes a schema.
///
/// # Errors
/// If it is not a schema, refers outside the document, or is too large.
pub(crate) fn normalized(schema: &Value, reading: Reading) -> Result<Normalized<'_>, SchemaError> {
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
