//! Step-3: `steptml` elements between DeepSeek's markers.
//! Source: the published chat template of stepfun-ai/step3.

use super::Family;
use super::think_tags::THINK;
use crate::dialect::{AnswerSyntax, CallBody, CallSyntax, Dialect, ParameterCall, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<steptml:invoke"]],
    model_names: &["step3", "step-3"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "step3",
    channels: &[THINK],
    // Some templates write it between two calls.
    answer: AnswerSyntax { dropped: &["<｜tool_sep｜>"], ..AnswerSyntax::PLAIN },
    calls: &[CallSyntax {
        section: Tags::new("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"),
        ..CallSyntax::new(
            Tags::new("<｜tool_call_begin｜>", "<｜tool_call_end｜>"),
            CallBody::Parameters(&ParameterCall {
                before_name: "function<｜tool_sep｜>",
                name: Tags::new("<steptml:invoke name=\"", "\">"),
                key: Tags::new("<steptml:parameter name=\"", "\">"),
                value: Tags::new("", "</steptml:parameter>"),
                between: "",
                end: "</steptml:invoke>",
                ..ParameterCall::INVOKE
            }),
        )
    }],
    ..Dialect::PLAIN
};
