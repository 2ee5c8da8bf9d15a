//! FireFunction v2: a JSON list after the word `functools`.

use super::Family;
use crate::dialect::{CallBody, CallSyntax, Dialect, JsonCall, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["functools["]],
    model_names: &["firefunction"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect { name: "firefunction", calls: &[CALLS], ..Dialect::PLAIN };

/// `functools[{"name": …, "arguments": …}]`.
pub(super) const CALLS: CallSyntax =
    CallSyntax::new(Tags::new("functools", ""), CallBody::Json(JsonCall::LIST));
