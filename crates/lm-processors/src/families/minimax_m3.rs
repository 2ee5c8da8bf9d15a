//! MiniMax-M3: `invoke` elements with nested elements as arguments; each tag has a prefix.
//! Source: the published chat template of MiniMaxAI/MiniMax-M3.

use super::Family;
use crate::dialect::{
    CallBody, CallSyntax, CallsInside, ChannelSyntax, Dialect, ParameterCall, Tags, UnmatchedEnd, Untyped,
    ValueText,
};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["]<]minimax[>["]],
    model_names: &["minimax-m3"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "minimax_m3",
    channels: &[ChannelSyntax {
        unmatched_end: UnmatchedEnd::DroppedAtStart,
        calls_inside: CallsInside::AtStart,
        ..ChannelSyntax::new(Tags::new("<mm:think>", "</mm:think>"))
    }],
    calls: &[CallSyntax {
        section: Tags::lines("]<]minimax[>[<tool_call>", "]<]minimax[>[</tool_call>"),
        separator: "\n",
        ..CallSyntax::new(
            Tags::new("]<]minimax[>[<invoke", "]<]minimax[>[</invoke>"),
            CallBody::Parameters(&ParameterCall {
                key: Tags::new("]<]minimax[>[<", ">"),
                value: Tags::new("", "]<]minimax[>[</"),
                written: ValueText::Elements,
                untyped: Untyped::Text,
                between: "",
                ..ParameterCall::INVOKE
            }),
        )
    }],
    ..Dialect::PLAIN
};
