//! Ling 3: calls as in GLM-4.5, on separate lines.
//! Source: the call format of inclusionAI's published chat template of Ling 3.0.

use super::Family;
use super::hermes;
use super::think_tags::THINK;
use crate::dialect::{
    AnswerSyntax, CallBody, CallSyntax, CallsInside, ChannelSyntax, Dialect, ParameterCall, Tags, Trim,
};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<tool_call>", "<arg_key>", "<role>ASSISTANT</role>"]],
    model_names: &["ling-3"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "ling3",
    channels: &[ChannelSyntax {
        calls_inside: CallsInside::AtStart,
        trim_start: Trim::Nothing,
        trim_end: Trim::Nothing,
        ..THINK
    }],
    // End of the turn, if the model writes it as text.
    answer: AnswerSyntax { dropped: &["<|role_end|>"], ..AnswerSyntax::PLAIN },
    calls: &[
        CallSyntax {
            separator: "\n",
            ..CallSyntax::new(
                Tags::new("<tool_call>", "</tool_call>"),
                CallBody::Parameters(&ParameterCall {
                    after_key: "\n",
                    between: "\n",
                    ..ParameterCall::ARG_KEY
                }),
            )
        },
        // JSON between these tags, as other families write.
        hermes::CALLS,
    ],
    ..Dialect::PLAIN
};
