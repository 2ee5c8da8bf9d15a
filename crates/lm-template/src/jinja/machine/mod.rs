//! Runs a template: statements write, expressions give values, and every step counts against the limits.

mod attributes;
mod calls;
mod cursor;
mod expressions;
mod loops;
mod macros;
mod objects;
mod scopes;
mod slices;
mod statements;

use std::ops::Range;

use super::error::Result;
use super::functions::Clock;
use super::limits::Limits;
use super::syntax::ast::Body;
use super::text::{Text, TextWriter};
use super::value::Value;

pub(crate) use cursor::Cursor;
pub(crate) use macros::Macro;
pub(crate) use objects::{Object, ObjectId};
use scopes::Scopes;

/// What a statement says about the loop around it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Flow {
    Next,
    Break,
    Continue,
}

/// A rendering on its way.
#[derive(Debug)]
pub(crate) struct Machine<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) clock: Clock,
    scopes: Scopes,
    objects: Vec<Object>,
    /// How many texts are being written that are not the rendering itself.
    captures: usize,
    /// Bytes of the rendering so far.
    rendered: usize,
    generation: Vec<Range<usize>>,
}

/// Renders a template with these variables: the text, and the byte ranges of `{% generation %}` blocks in it.
pub(crate) fn render(
    body: &Body,
    variables: Vec<(String, Value)>,
    clock: Clock,
    limits: &Limits,
) -> Result<(Text, Vec<Range<usize>>)> {
    let mut machine = Machine {
        limits,
        clock,
        scopes: Scopes::new(variables),
        objects: Vec::new(),
        captures: 0,
        rendered: 0,
        generation: Vec::new(),
    };
    let mut out = TextWriter::new(limits);
    machine.run(body, &mut out)?;
    Ok((out.finish(), machine.generation))
}
