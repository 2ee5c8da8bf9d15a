//! Hunyuan 3: keys and values as in GLM, the name ended by a tag, all calls in one section.
//! Source: the call format of tencent's published chat template.

use super::Family;
use super::think_tags::THINK;
use crate::dialect::{CallBody, CallSyntax, CallsInside, ChannelSyntax, Dialect, ParameterCall, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<tool_calls>", "<arg_key>", "<tool_sep>"]],
    model_names: &["hunyuan-3", "hy-v3"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "hy_v3",
    channels: &[ChannelSyntax { calls_inside: CallsInside::AtStart, ..THINK }],
    calls: &[
        CallSyntax { section: Tags::lines("<tool_calls>", "</tool_calls>"), ..CALL },
        // The models sometimes omit the section's tags.
        CALL,
        // The same tags with a suffix.
        CallSyntax {
            section: Tags::lines("<tool_calls:opensource>", "</tool_calls:opensource>"),
            separator: "\n",
            ..CallSyntax::new(
                Tags::new("<tool_call:opensource>", "</tool_call:opensource>"),
                CallBody::Parameters(&ParameterCall {
                    name: Tags::new("", "<tool_sep:opensource>"),
                    key: Tags::new("<arg_key:opensource>", "</arg_key:opensource>"),
                    value: Tags::new("<arg_value:opensource>", "</arg_value:opensource>"),
                    after_key: "\n",
                    between: "\n",
                    ..ParameterCall::ARG_KEY
                }),
            )
        },
    ],
    ..Dialect::PLAIN
};

const CALL: CallSyntax = CallSyntax {
    separator: "\n",
    ..CallSyntax::new(
        Tags::new("<tool_call>", "</tool_call>"),
        CallBody::Parameters(&ParameterCall {
            name: Tags::new("", "<tool_sep>"),
            after_key: "\n",
            between: "\n",
            ..ParameterCall::ARG_KEY
        }),
    )
};
