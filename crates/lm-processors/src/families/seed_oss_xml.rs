//! Seed-OSS: calls as in Qwen3-Coder, with its own tags and no line breaks around values.
//! Source: the published chat template of ByteDance-Seed/Seed-OSS-36B-Instruct.

use super::Family;
use super::hermes;
use crate::dialect::{
    AnswerSyntax, BeforeCalls, CallBody, CallSyntax, ChannelSyntax, Dialect, ParameterCall, Tags,
};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<seed:tool_call>"]],
    model_names: &["seed-oss"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "seed_oss_xml",
    channels: &[ChannelSyntax::new(Tags::new("<seed:think>", "</seed:think>"))],
    answer: AnswerSyntax { before_calls: BeforeCalls::Layout("\n"), ..AnswerSyntax::PLAIN },
    calls: &[
        CallSyntax {
            separator: "\n",
            ..CallSyntax::new(
                MARKERS,
                CallBody::Parameters(&ParameterCall {
                    value: Tags::new("", "</parameter>"),
                    ..ParameterCall::FUNCTION
                }),
            )
        },
        // Qwen's JSON form of calls, between these tags.
        CallSyntax { call: MARKERS, ..hermes::CALLS },
    ],
    ..Dialect::PLAIN
};

const MARKERS: Tags = Tags::lines("<seed:tool_call>", "</seed:tool_call>");
