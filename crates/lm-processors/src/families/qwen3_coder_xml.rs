//! Qwen3-Coder, Qwen3.5 and later, Nemotron 3, Step-3.5: each call as `<function=f>` in `<tool_call>` tags.
//! Source: the published chat templates of Qwen/Qwen3-Coder-30B-A3B-Instruct and Qwen/Qwen3.5-0.8B.

use super::Family;
use super::hermes;
use super::think_tags::THINK;
use crate::dialect::{
    AnswerSyntax, BeforeCalls, CallBody, CallSyntax, CallsInside, ChannelSyntax, Dialect, ParameterCall,
    Tags, Undeclared,
};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<tool_call>", "<function=", "<parameter="]],
    model_names: &["qwen3-coder", "qwen3.5", "nemotron-3", "step-3.5"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "qwen3_coder_xml",
    channels: &[ChannelSyntax { calls_inside: CallsInside::AtStart, ..THINK }],
    answer: AnswerSyntax { before_calls: BeforeCalls::Layout("\n"), ..AnswerSyntax::PLAIN },
    calls: &[
        CALLS,
        // Qwen's JSON form of calls between these tags.
        hermes::CALLS,
        // The models sometimes omit the outer tag.
        CallSyntax {
            undeclared: Undeclared::Text,
            ..CallSyntax::new(
                Tags::new("<function=", "</function>"),
                CallBody::Parameters(&ParameterCall {
                    name: Tags::new("", ">"),
                    end: "",
                    ..ParameterCall::FUNCTION
                }),
            )
        },
    ],
    ..Dialect::PLAIN
};

/// `<tool_call>\n<function=f>\n<parameter=k>\nv\n</parameter>\n</function>\n</tool_call>`, one after another.
pub(super) const CALLS: CallSyntax = CallSyntax {
    separator: "\n",
    ..CallSyntax::new(
        Tags::lines("<tool_call>", "</tool_call>"),
        CallBody::Parameters(&ParameterCall::FUNCTION),
    )
};
