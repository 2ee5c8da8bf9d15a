//! Models without their own call syntax, made to answer in JSON: `{"tool_call": {…}}`.

use super::Family;
use crate::dialect::{CallBody, CallSyntax, Dialect, JsonCall, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family::of(&DialectProcessor::new(&DIALECT));

const DIALECT: Dialect = Dialect {
    name: "generic_json",
    calls: &[
        CallSyntax::new(
            Tags { after_open: " ", ..Tags::new("{\"tool_call\":", "}") },
            CallBody::Json(JsonCall::ONE),
        ),
        CallSyntax::new(
            Tags { after_open: " ", ..Tags::new("{\"tool_calls\":", "}") },
            CallBody::Json(JsonCall::LIST),
        ),
    ],
    ..Dialect::PLAIN
};
