//! K2 Horizon: keys and values as in GLM, in its own tags.
//! Source: the call format of the model's published chat template.

use super::Family;
use crate::dialect::{
    CallBody, CallSyntax, CallsInside, ChannelSyntax, Dialect, ParameterCall, Reported, Tags, Undeclared,
    Unmarked,
};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<ifm|tool_calls>", "<ifm|arg_key>"]],
    model_names: &["k2-horizon"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "k2_horizon",
    channels: &[ChannelSyntax {
        unmarked: Unmarked::Channel,
        calls_inside: CallsInside::End,
        ..ChannelSyntax::new(Tags::new("<ifm|think>", "</ifm|think>"))
    }],
    calls: &[CallSyntax {
        section: Tags::new("<ifm|tool_calls>", "</ifm|tool_calls>"),
        undeclared: Undeclared::Malformed,
        reported: Reported::AtSectionEnd,
        ..CallSyntax::new(
            Tags::new("<ifm|tool_call>", "</ifm|tool_call>"),
            CallBody::Parameters(&ParameterCall {
                key: Tags::new("<ifm|arg_key>", "</ifm|arg_key>"),
                value: Tags::new("<ifm|arg_value>", "</ifm|arg_value>"),
                ..ParameterCall::ARG_KEY
            }),
        )
    }],
    ..Dialect::PLAIN
};
