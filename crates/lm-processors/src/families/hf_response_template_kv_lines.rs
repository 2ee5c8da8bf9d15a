//! Calls as lines of `key: value` in `<tool_call>` tags: a response template format of the transformers
//! library. Source: the `response_schema` examples of transformers 5.

use super::Family;
use super::think_tags::THINK;
use crate::dialect::{
    AnswerSyntax, BeforeCalls, CallBody, CallSyntax, ChannelSyntax, Dialect, ParameterCall, Tags, Trim,
};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family =
    Family { markers: &[], model_names: &[], ..Family::of(&DialectProcessor::new(&DIALECT)) };

const DIALECT: Dialect = Dialect {
    name: "hf_response_template_kv_lines",
    channels: &[ChannelSyntax {
        trim_start: Trim::Whitespace,
        trim_end: Trim::Whitespace,
        trim_after: Trim::Whitespace,
        ..THINK
    }],
    answer: AnswerSyntax {
        dropped: &["<|im_end|>"],
        trim: Trim::Whitespace,
        before_calls: BeforeCalls::Dropped,
        ..AnswerSyntax::PLAIN
    },
    calls: &[CallSyntax {
        separator: "\n",
        ..CallSyntax::new(
            Tags { after_open: "\n", ..Tags::new("<tool_call>", "</tool_call>") },
            CallBody::Parameters(&ParameterCall {
                key: Tags::new("", ":"),
                value: Tags { after_open: " ", ..Tags::new("", "\n") },
                between: "\n",
                end: "",
                ..ParameterCall::FUNCTION
            }),
        )
    }],
    ..Dialect::PLAIN
};
