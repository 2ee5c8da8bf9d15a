//! Kimi K2: calls in a section; the id consists of name and index.

use super::Family;
use super::think_tags::THINK;
use crate::dialect::{CallBody, CallSyntax, CallsInside, ChannelSyntax, Dialect, NamedCall, NamedId, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<|tool_calls_section_begin|>"]],
    model_names: &["kimi-k2"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "kimi_k2",
    channels: &[ChannelSyntax { calls_inside: CallsInside::End, ..THINK }],
    calls: &[
        CallSyntax {
            section: Tags::new("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
            ..CALL
        },
        CallSyntax { section: Tags::new("<|tool_call_section_begin|>", "<|tool_call_section_end|>"), ..CALL },
    ],
    ..Dialect::PLAIN
};

const CALL: CallSyntax = CallSyntax::new(
    Tags::new("<|tool_call_begin|>", "<|tool_call_end|>"),
    CallBody::Named(NamedCall {
        before_name: "functions.",
        id: NamedId::NameAndIndex,
        ..NamedCall::new("<|tool_call_argument_begin|>")
    }),
);
