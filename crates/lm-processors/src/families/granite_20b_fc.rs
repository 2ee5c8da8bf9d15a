//! Granite 20B function calling: a token before each call.

use super::Family;
use crate::dialect::{CallBody, CallSyntax, Dialect, JsonCall, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<function_call>"]],
    model_names: &["granite-20b-functioncalling"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "granite_20b_fc",
    calls: &[CallSyntax::new(
        Tags { after_open: " ", ..Tags::new("<function_call>", "") },
        CallBody::Json(JsonCall::ONE),
    )],
    ..Dialect::PLAIN
};
