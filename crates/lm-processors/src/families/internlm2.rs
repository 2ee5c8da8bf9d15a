//! InternLM 2: one action per block.

use super::Family;
use crate::dialect::{CallBody, CallSyntax, Dialect, JsonCall, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<|action_start|>"]],
    model_names: &["internlm2", "internlm3"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "internlm2",
    calls: &[CallSyntax::new(
        Tags::new("<|action_start|><|plugin|>", "<|action_end|>"),
        CallBody::Json(JsonCall::ONE_WITH_PARAMETERS),
    )],
    ..Dialect::PLAIN
};
