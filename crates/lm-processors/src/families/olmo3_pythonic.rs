//! OLMo 3: Python calls in a section, one per line.
//! Source: the published chat template of allenai/Olmo-3-7B-Instruct.

use super::Family;
use super::think_tags::THINK;
use crate::dialect::{CallBody, CallSyntax, ChannelSyntax, Dialect, PythonCall, Tags, Trim};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    names: &["olmo3"],
    markers: &[&["<function_calls>"]],
    model_names: &["olmo-3", "olmo3"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "olmo3_pythonic",
    channels: &[ChannelSyntax {
        trim_start: Trim::Nothing,
        trim_end: Trim::Nothing,
        trim_after: Trim::Nothing,
        ..THINK
    }],
    calls: &[CallSyntax::new(
        Tags::lines("<function_calls>", "</function_calls>"),
        CallBody::Python(PythonCall::LINES),
    )],
    ..Dialect::PLAIN
};
