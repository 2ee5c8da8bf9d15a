//! Errors of schemas that cannot be expressed as a grammar.

use lm_template::Value;

/// Maximum length of a value in an error.
const MAX_SHOWN: usize = 80;

/// Fault of a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaFault {
    /// The schema is not a JSON schema.
    #[error("{0}")]
    Bad(String),
    /// The keyword is valid but cannot be expressed, and omitting it would allow any value.
    #[error("it has no grammar")]
    Unsupported,
    /// A pattern that has no grammar, and that no validator can search for by the rules of ECMA-262.
    #[error("{0}")]
    UnsupportedPattern(String),
    /// No value matches the schema.
    #[error("no value matches it{0}")]
    Unsatisfiable(&'static str),
    /// Numbers match the schema, but its bounds are so close or so far from zero that all of them have more
    /// digits than a grammar writes.
    #[error("the numbers between its bounds have more digits than a grammar writes")]
    NarrowRange,
    /// Values match the schema, but the model's syntax can write none of them.
    #[error("the syntax of the {processor} models cannot write {}", .value.as_deref().unwrap_or("its values"))]
    Unwritable {
        /// A listed value that cannot be written, as JSON of at most 80 characters; `None` if the schema
        /// lists none.
        value: Option<String>,
        /// Name of the processor.
        processor: &'static str,
    },
    /// The tool's name, or a parameter's, is not read back from a call in the model's syntax.
    #[error("`{name}` is not read back as a name from a call of the {processor} models")]
    Name {
        /// The name.
        name: String,
        /// Name of the processor.
        processor: &'static str,
    },
    /// The schema exceeds the size or depth limit for untrusted schemas.
    #[error("the schema is too large: {0}")]
    TooLarge(&'static str),
}

/// A schema that cannot be expressed as a grammar: location and reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError {
    /// Tool whose parameters the schema describes; `None` for a response format.
    pub tool: Option<String>,
    /// Location in the schema, as a JSON pointer in URI form: `#/properties/a`.
    pub path: String,
    /// The keyword; empty if the fault concerns the schema as a whole.
    pub keyword: String,
    /// The fault.
    pub fault: SchemaFault,
}

impl SchemaError {
    pub(crate) fn bad(path: &str, keyword: &str, reason: &str) -> Self {
        Self::new(path, keyword, SchemaFault::Bad(reason.to_owned()))
    }

    pub(crate) fn unsatisfiable(path: &str, keyword: &str, reason: &'static str) -> Self {
        Self::new(path, keyword, SchemaFault::Unsatisfiable(reason))
    }

    /// Fault of a schema whose values the syntax of `processor` cannot write: the one at its place that was
    /// found, if it is listed.
    pub(crate) fn unwritable(found: Option<&(String, Option<Value>)>, processor: &'static str) -> Self {
        let (path, value) =
            found.map_or(("#", None), |(path, value)| (path.as_str(), value.as_ref().map(shortened)));
        Self::new(path, "", SchemaFault::Unwritable { value, processor })
    }

    pub(crate) fn new(path: &str, keyword: &str, fault: SchemaFault) -> Self {
        Self { tool: None, path: path.to_owned(), keyword: keyword.to_owned(), fault }
    }

    pub(crate) fn of_tool(self, name: &str) -> Self {
        Self { tool: Some(name.to_owned()), ..self }
    }
}

/// A value as JSON, cut after 80 characters.
fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl std::error::Error for SchemaError {}

impl std::fmt::Display for SchemaError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(tool) = &self.tool {
            write!(f, "tool `{tool}`: ")?;
        }
        write!(f, "schema at {}", self.path)?;
        if !self.keyword.is_empty() {
            write!(f, ", keyword `{}`", self.keyword)?;
        }
        write!(f, ": {}", self.fault)
    }
}
