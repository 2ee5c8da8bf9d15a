//! Schemas of a document being read: their keywords and location.

use lm_template::Value;
use serde_json::Map;

use super::error::SchemaError;

/// Maximum nesting depth of schemas.
pub(super) const MAX_DEPTH: usize = 48;

/// Keywords of a schema, or other members of a JSON object.
pub(super) type Object = Map<String, Value>;

/// Default for additional properties of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Closing {
    Open,
    Closed,
}

/// A schema being read: its keywords and location.
#[derive(Clone, Copy)]
pub(super) struct Node<'s> {
    pub(super) map: &'s Object,
    pub(super) path: &'s str,
    pub(super) place: Place,
}

/// Position of a schema in the document, as far as its normal form depends on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) depth: usize,
    pub(super) closing: Closing,
    /// The definition that this schema is a part of in place: not below a property or an item.
    pub(super) definition: Option<usize>,
    /// True if the whole may have values even if this schema has none: it is a branch of a combination, or an
    /// optional property.
    pub(super) may_be_empty: bool,
}

impl Place {
    /// Place of a branch of a combination; it must not close an object that another branch leaves open.
    pub(super) fn branch(self, closing: Closing) -> Self {
        Self { depth: self.depth + 1, closing, may_be_empty: true, ..self }
    }
}

impl Node<'_> {
    pub(super) fn bad(&self, keyword: &str, reason: &str) -> SchemaError {
        SchemaError::bad(self.path, keyword, reason)
    }

    pub(super) fn text<'v>(&self, keyword: &str, value: &'v Value) -> Result<&'v str, SchemaError> {
        value.as_str().ok_or_else(|| self.bad(keyword, "it must be a string"))
    }
}
