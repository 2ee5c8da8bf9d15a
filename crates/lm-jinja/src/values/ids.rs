//! Indices of the interpreter's state that values refer to.

/// Index of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ObjectId(pub(crate) usize);

/// Index of a scope.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ScopeId(pub(crate) usize);
