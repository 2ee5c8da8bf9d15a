//! EXAONE 4: the Hermes form, each call with its tags on one line.

use super::Family;
use super::hermes;
use crate::dialect::{CallSyntax, Dialect, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["[|assistant|]", "<tool_call>"]],
    model_names: &["exaone-4"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "exaone4",
    calls: &[CallSyntax { call: Tags::new("<tool_call>", "</tool_call>"), ..hermes::CALLS }],
    ..hermes::DIALECT
};
