//! Functionary v3.2: every part of a reply starts with `>>>` and a name; `all` is the answer.

use super::Family;
use crate::dialect::{CallBody, CallSyntax, Dialect, NamedCall, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&[">>>all"]],
    model_names: &["functionary"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "functionary_v32",
    calls: &[CallSyntax::new(
        Tags::new(">>>", ""),
        CallBody::Named(NamedCall { answer_name: Some("all"), ..NamedCall::new("\n") }),
    )],
    ..Dialect::PLAIN
};
