//! DeepSeek V3.2 and V4: DSML `invoke` elements, with values marked as text or JSON. The section's name
//! differs. Source: the encoding published with deepseek-ai/DeepSeek-V3.2.

use super::Family;
use super::think_tags::THINK;
use crate::dialect::{
    AnswerSyntax, BeforeCalls, CallBody, CallSyntax, CallsInside, ChannelSyntax, Dialect, ParameterCall,
    Tags, TypeAttribute,
};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["｜DSML｜"]],
    model_names: &["deepseek-v3.2", "deepseek-v4"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "deepseek_dsml",
    channels: &[ChannelSyntax { calls_inside: CallsInside::End, ..THINK }],
    answer: AnswerSyntax { before_calls: BeforeCalls::Layout("\n\n"), ..AnswerSyntax::PLAIN },
    calls: &[
        CallSyntax {
            section: Tags::lines("<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
            ..INVOKE
        },
        CallSyntax { section: Tags::lines("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"), ..INVOKE },
    ],
    ..Dialect::PLAIN
};

const INVOKE: CallSyntax = CallSyntax {
    separator: "\n",
    ..CallSyntax::new(
        Tags::new("<｜DSML｜invoke", "</｜DSML｜invoke>"),
        CallBody::Parameters(&ParameterCall {
            key: Tags::new("<｜DSML｜parameter name=\"", "\""),
            type_attribute: Some(TypeAttribute {
                open: " string=\"",
                close: "\">",
                text: "true",
                others: &[("", "false")],
            }),
            value: Tags::new("", "</｜DSML｜parameter>"),
            ..ParameterCall::INVOKE
        }),
    )
};
