//! Macros as values.

use std::sync::Arc;

use super::ids::ScopeId;
use crate::syntax::ast::MacroDefinition;

/// A macro and its enclosing scope.
#[derive(Debug)]
pub(crate) struct Macro {
    pub(crate) definition: Arc<MacroDefinition>,
    pub(crate) scope: ScopeId,
}

impl Macro {
    /// Name, for printing.
    pub(crate) fn name(&self) -> Option<&str> {
        self.definition.name.as_deref()
    }
}
