//! LFM2 and LFM2.5: a list of Python calls between markers.
//! Source: the published chat templates of LiquidAI/LFM2-8B-A1B and LFM2.5-8B-A1B.

use super::Family;
use super::think_tags::THINK;
use crate::dialect::{
    AnswerSyntax, CallBody, CallSyntax, ChannelSyntax, Dialect, JsonCall, PythonCall, Tags, Trim,
};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["List of tools: ["], &["<|tool_list_start|>"]],
    model_names: &["lfm2"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "lfm2_pythonic",
    channels: &[ChannelSyntax { ..THINK }],
    answer: AnswerSyntax { trim_after_calls: Trim::LineBreaks, ..AnswerSyntax::PLAIN },
    calls: &[
        CallSyntax::new(MARKERS, CallBody::Python(PythonCall::LIST)),
        CallSyntax::new(MARKERS, CallBody::Json(JsonCall::LIST)),
    ],
    ..Dialect::PLAIN
};

const MARKERS: Tags = Tags::new("<|tool_call_start|>", "<|tool_call_end|>");
