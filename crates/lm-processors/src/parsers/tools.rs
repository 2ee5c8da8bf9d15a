//! Declared tools, and their names in calls.

use std::sync::Arc;

use lm_template::ToolSpec;

use crate::declared_names::{Declared, declared};
use crate::values::{Schema, SchemaCache};

/// Maximum length of a name in most syntaxes; longer text is not a call.
pub(crate) const MAX_NAME_BYTES: usize = 1 << 10;

/// Declared tools, with the compiled schemas of their parameters.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    specs: Arc<[ToolSpec]>,
    schemas: Arc<SchemaCache>,
}

impl Tools {
    pub(crate) fn new(specs: Arc<[ToolSpec]>) -> Self {
        Self { specs, schemas: Arc::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.specs.iter().map(ToolSpec::name)
    }

    /// Name of the tool, if there is only one.
    pub(crate) fn only_name(&self) -> Option<&str> {
        if let [only] = &*self.specs { Some(only.name()) } else { None }
    }

    pub(crate) fn declares(&self, name: &str) -> bool {
        self.names().any(|declared| declared == name)
    }

    /// Declared name of a tool, without a `functions.` prefix that the model adds.
    pub(crate) fn declared_name<'n>(&self, name: &'n str) -> &'n str {
        match name.strip_prefix("functions.") {
            Some(bare) if !self.declares(name) && self.declares(bare) => bare,
            _ => name,
        }
    }

    /// Schema of the arguments of the tool with this name.
    pub(crate) fn schema(&self, name: &str) -> Option<Schema<'_>> {
        let name = self.declared_name(name);
        let tool = self.specs.iter().find(|tool| tool.name() == name)?;
        Some(Schema::new(tool.parameters(), &self.schemas))
    }

    /// Matches a declared name at the start of `text` that is followed by one of `ends`.
    pub(crate) fn match_name(&self, text: &str, ends: &[&str]) -> Declared<'_> {
        declared(text, self.names(), ends)
    }
}

/// Returns true if a text can be a tool's name: not empty, without whitespace, quotes and brackets.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "\"'<>{}()[]".contains(c))
}
