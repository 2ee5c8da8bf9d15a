//! Phi-4-mini: tools in `<|tool|>` tokens, calls as in FireFunction.

use super::Family;
use super::firefunction;
use crate::dialect::{CallBody, CallSyntax, Dialect, JsonCall, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    names: &["phi4_mini_json"],
    markers: &[&["<|tool|>", "<|/tool|>"], &["functools[", "<|end|>"]],
    model_names: &["phi-4-mini"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "phi4_mini",
    calls: &[
        firefunction::CALLS,
        // The tokenizer's own markers.
        CallSyntax::new(Tags::new("<|tool_call|>", "<|/tool_call|>"), CallBody::Json(JsonCall::LIST)),
    ],
    ..Dialect::PLAIN
};
