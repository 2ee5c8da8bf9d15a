//! Errors of schemas that cannot be expressed as a grammar.

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
    pub(super) fn bad(path: &str, keyword: &str, reason: &str) -> Self {
        Self::new(path, keyword, SchemaFault::Bad(reason.to_owned()))
    }

    pub(super) fn unsatisfiable(path: &str, keyword: &str, reason: &'static str) -> Self {
        Self::new(path, keyword, SchemaFault::Unsatisfiable(reason))
    }

    pub(super) fn new(path: &str, keyword: &str, fault: SchemaFault) -> Self {
        Self { tool: None, path: path.to_owned(), keyword: keyword.to_owned(), fault }
    }

    pub(super) fn of_tool(self, name: &str) -> Self {
        Self { tool: Some(name.to_owned()), ..self }
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
