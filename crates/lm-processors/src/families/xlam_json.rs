//! xLAM: a JSON list, bare or in one of several wrappers.

use super::Family;
use super::think_tags::THINK;
use crate::dialect::{CallBody, CallSyntax, Dialect, JsonCall, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family =
    Family { model_names: &["xlam"], ..Family::of(&DialectProcessor::new(&DIALECT)) };

const DIALECT: Dialect = Dialect {
    name: "xlam_json",
    channels: &[THINK],
    calls: &[
        CallSyntax::new(Tags::NONE, LIST),
        CallSyntax::new(Tags::new("<tool_call>", "</tool_call>"), LIST),
        CallSyntax::new(Tags::new("[TOOL_CALLS]", ""), LIST),
        CallSyntax::new(Tags::lines("```json", "```"), LIST),
    ],
    ..Dialect::PLAIN
};

const LIST: CallBody = CallBody::Json(JsonCall::LIST);
