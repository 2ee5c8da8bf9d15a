//! Evaluation: statements write, expressions evaluate to values, and every step counts against the budget.

mod attributes;
mod calls;
mod expressions;
mod generators;
mod loops;
mod macros;
mod slices;
mod statements;

use std::ops::Range;

use super::budget::Budget;
use super::builtins::Builtins;
use super::clock::Clock;
use super::error::BoxedResult as Result;
use super::interpreter::Interpreter;
use super::syntax::ast::Tree;
use super::text::{Text, TextWriter};
use super::values::Value;
use super::{filters, predicates};

/// The filters and tests that templates may use.
pub(crate) const BUILTINS: Builtins = Builtins { find_filter: filters::find, find_test: predicates::find };

/// Renders a template with `variables`; returns the text, and the byte ranges of its `{% generation %}`
/// blocks.
pub(crate) fn render(
    template: &Tree,
    variables: Vec<(String, Value)>,
    clock: Clock,
    budget: &Budget,
) -> Result<(Text, Vec<Range<usize>>)> {
    let mut interpreter = Interpreter::new(&template.blocks, variables, clock, BUILTINS, budget);
    let mut out = TextWriter::new(budget);
    interpreter.run(&template.body, &mut out)?;
    Ok((out.finish(), interpreter.generation))
}
