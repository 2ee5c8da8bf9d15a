//! Granite 3.x: a JSON list after a token.

use super::Family;
use super::think_tags::THINK;
use crate::dialect::{AnswerSyntax, BeforeCalls, CallBody, CallSyntax, Dialect, JsonCall, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<|start_of_role|>", "<|tool_call|>"]],
    model_names: &["granite-3"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "granite_json",
    channels: &[THINK],
    answer: AnswerSyntax {
        dropped: &["<response>", "</response>"],
        before_calls: BeforeCalls::Layout("\n"),
        ..AnswerSyntax::PLAIN
    },
    calls: &[
        CallSyntax::new(Tags::new("<|tool_call|>", ""), CallBody::Json(JsonCall::LIST)),
        CallSyntax::new(Tags::new("<tool_call>", ""), CallBody::Json(JsonCall::LIST)),
    ],
    ..Dialect::PLAIN
};
