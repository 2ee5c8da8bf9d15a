//! Jamba: a JSON list in `<tool_calls>` tags, one call per line.

use super::Family;
use super::hunyuan_a13b;
use crate::dialect::{CallBody, CallSyntax, Dialect, JsonCall};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family =
    Family { model_names: &["jamba"], ..Family::of(&DialectProcessor::new(&DIALECT)) };

const DIALECT: Dialect = Dialect {
    name: "jamba",
    calls: &[CallSyntax { body: CallBody::Json(JsonCall::LINES), ..hunyuan_a13b::CALLS }],
    ..Dialect::PLAIN
};
