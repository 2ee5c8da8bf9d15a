//! Why a schema gives no grammar.

/// What is wrong with a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaFault {
    /// The schema is no JSON schema, or contradicts itself.
    #[error("{0}")]
    Bad(String),
    /// The keyword is right, but has no grammar, and leaving it out would allow anything.
    #[error("it has no grammar")]
    Unsupported,
    /// The tool's name, or the name of a parameter, is not read back from a call in the model's syntax.
    #[error("`{name}` is not read back as a name from a call of the {processor} models")]
    Name {
        /// The name.
        name: String,
        /// The processor's name.
        processor: &'static str,
    },
    /// The schema is larger or deeper than what is compiled for strangers.
    #[error("the schema is too large: {0}")]
    TooLarge(&'static str),
}

/// A schema that gives no grammar: where it stands, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError {
    /// The tool whose parameters they are; none for a response format.
    pub tool: Option<String>,
    /// Where in the schema, as a JSON pointer in URI form: `#/properties/a`.
    pub path: String,
    /// The keyword; empty when the schema itself is none.
    pub keyword: String,
    /// What is wrong.
    pub fault: SchemaFault,
}

impl SchemaError {
    pub(super) fn bad(path: &str, keyword: &str, reason: &str) -> Self {
        Self::new(path, keyword, SchemaFault::Bad(reason.to_owned()))
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
