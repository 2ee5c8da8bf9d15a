//! State of a rendering: scopes, objects, iteration. What runs in it is in `evaluation`.

mod iteration;
mod objects;
mod scopes;

use std::ops::Range;

use super::budget::Budget;
use super::builtins::Builtins;
use super::clock::Clock;
use super::syntax::ast::Blocks;
use super::values::{ScopeId, Value};
use scopes::Scopes;

pub(crate) use objects::{Loop, Object};

/// Control flow after a statement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Flow {
    Next,
    Break,
    Continue,
}

/// State of a rendering.
#[derive(Debug)]
pub(crate) struct Interpreter<'a> {
    pub(crate) budget: &'a Budget,
    pub(crate) clock: Clock,
    pub(crate) builtins: Builtins,
    pub(crate) scopes: Scopes,
    /// Blocks of the template, for `self`.
    pub(crate) blocks: &'a Blocks,
    /// Scope that blocks see: the template's, or inside a `scoped` block the one around its tag.
    pub(crate) block_scope: ScopeId,
    objects: Vec<Object>,
    /// Number of open captures: texts being written other than the rendering itself.
    pub(crate) captures: usize,
    /// Bytes rendered so far.
    pub(crate) rendered: usize,
    pub(crate) generation: Vec<Range<usize>>,
}

impl<'a> Interpreter<'a> {
    /// Creates the state of a rendering with `variables`.
    pub(crate) fn new(
        blocks: &'a Blocks,
        variables: Vec<(String, Value)>,
        clock: Clock,
        builtins: Builtins,
        budget: &'a Budget,
    ) -> Self {
        let scopes = Scopes::new(variables);
        Self {
            budget,
            clock,
            builtins,
            blocks,
            block_scope: scopes.current(),
            scopes,
            objects: Vec::new(),
            captures: 0,
            rendered: 0,
            generation: Vec::new(),
        }
    }
}
