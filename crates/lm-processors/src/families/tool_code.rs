//! Gemma 3 and 3n with LiteRT-LM's templates: Python calls in a code block.
//! Source: the chat template for google/gemma-3n-e2b-it that LiteRT-LM publishes.

use super::Family;
use crate::dialect::{CallBody, CallSyntax, Dialect, PythonCall, Tags};
use crate::dialect_processor::DialectProcessor;
use crate::preformatted::Syntax;

pub(super) const FAMILY: Family = Family {
    markers: &[&["```tool_code"]],
    model_names: &["gemma-3"],
    ..Family::of(&DialectProcessor::preformatted(&DIALECT, Syntax::Python))
};

const DIALECT: Dialect = Dialect {
    name: "tool_code",
    calls: &[CallSyntax::new(Tags::lines("```tool_code", "```"), CallBody::Python(PythonCall::LINES))],
    ..Dialect::PLAIN
};
