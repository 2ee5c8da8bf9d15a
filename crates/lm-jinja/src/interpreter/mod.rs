//! Interpreter of templates: statements write, expressions evaluate to values, and every step counts against the budget.

mod attributes;
mod calls;
mod cursor;
mod expressions;
mod loops;
mod macros;
mod objects;
mod scopes;
mod slice_indices;
mod statements;

use std::ops::Range;

use super::budget::Budget;
use super::error::BoxedResult as Result;
use super::functions::Clock;
use super::syntax::ast::Body;
use super::text::{Text, TextWriter};
use super::value::Value;

pub(crate) use cursor::Cursor;
pub(crate) use macros::Macro;
pub(crate) use objects::{Object, ObjectId};
use scopes::Scopes;

/// Control flow after a statement.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Flow {
    Next,
    Break,
    Continue,
}

/// State of a rendering.
#[derive(Debug)]
pub(crate) struct Interpreter<'a> {
    pub(crate) budget: &'a Budget,
    pub(crate) clock: Clock,
    scopes: Scopes,
    objects: Vec<Object>,
    /// Number of open captures: texts being written other than the rendering itself.
    captures: usize,
    /// Bytes rendered so far.
    rendered: usize,
    generation: Vec<Range<usize>>,
}

/// Renders a template with `variables`; returns the text, and the byte ranges of its `{% generation %}` blocks.
pub(crate) fn render(
    body: &Body,
    variables: Vec<(String, Value)>,
    clock: Clock,
    budget: &Budget,
) -> Result<(Text, Vec<Range<usize>>)> {
    let mut interpreter = Interpreter {
        budget,
        clock,
        scopes: Scopes::new(variables),
        objects: Vec::new(),
        captures: 0,
        rendered: 0,
        generation: Vec::new(),
    };
    let mut out = TextWriter::new(budget);
    interpreter.run(body, &mut out)?;
    Ok((out.finish(), interpreter.generation))
}
