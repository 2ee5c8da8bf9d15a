//! Reka Edge: the Hermes tags without a line break before the closing tag.

use super::Family;
use super::hermes;
use crate::dialect::{CallSyntax, Dialect, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family =
    Family { model_names: &["reka"], ..Family::of(&DialectProcessor::new(&DIALECT)) };

const DIALECT: Dialect = Dialect {
    name: "reka",
    calls: &[CallSyntax { call: Tags { before_close: "", ..hermes::CALLS.call }, ..hermes::CALLS }],
    ..hermes::DIALECT
};
