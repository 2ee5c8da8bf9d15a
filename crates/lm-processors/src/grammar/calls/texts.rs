//! Arguments whose type the parser cannot know before the alternative of the tool's schema.

use std::collections::BTreeSet;

use lm_template::{Map, Value};

use super::super::values::{Values, named_properties};
use super::parameters::may_be_text;

/// Arguments that some alternative of a tool's schema allows to be strings: the parser does not know the
/// alternative yet.
#[derive(Debug, Default)]
pub(super) struct Texts {
    names: BTreeSet<String>,
    /// Undeclared ones, too.
    further: bool,
}

impl Texts {
    /// Those of several alternatives.
    pub(super) fn of(values: &mut Values<'_>, alternatives: &[Map<String, Value>]) -> Self {
        let mut texts = Self::default();
        for schema in alternatives.iter().filter(|_| alternatives.len() > 1) {
            for (name, schema, _) in named_properties(schema) {
                if values.plain(&schema).iter().any(may_be_text) {
                    texts.names.insert(name);
                }
            }
            let patterns = schema.get("patternProperties").and_then(Value::as_object);
            let further = schema.get("additionalProperties").filter(|further| further.is_object());
            let mut undeclared = patterns.into_iter().flat_map(Map::values).chain(further);
            texts.further |= undeclared.any(|schema| values.plain(schema).iter().any(may_be_text));
        }
        texts
    }

    /// Returns true if the argument `name` may be a string.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.further || self.names.contains(name)
    }

    /// Returns true if some argument may be a string.
    pub(super) fn any(&self) -> bool {
        self.further || !self.names.is_empty()
    }
}
