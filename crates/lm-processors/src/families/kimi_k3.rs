//! Kimi-K3: its own markup, with the answer in an element as well.
//! Source: the published chat template of moonshotai/Kimi-K3.

use super::Family;
use crate::dialect::{
    AnswerSyntax, CallBody, CallSyntax, CallsInside, ChannelSyntax, Dialect, ParameterCall, Tags,
    TypeAttribute,
};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<|open|>", "<|sep|>"]],
    model_names: &["kimi-k3"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "kimi_k3",
    channels: &[ChannelSyntax {
        calls_inside: CallsInside::AtStart,
        ..ChannelSyntax::new(Tags::new("<|open|>think<|sep|>", "<|close|>think<|sep|>"))
    }],
    answer: AnswerSyntax {
        tags: Tags::new("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
        dropped: &["<|close|>message<|sep|>"],
        ..AnswerSyntax::PLAIN
    },
    calls: &[CallSyntax {
        section: Tags::new("<|open|>tools<|sep|>", "<|close|>tools<|sep|>"),
        ..CallSyntax::new(
            Tags::new("<|open|>call", "<|close|>call<|sep|>"),
            CallBody::Parameters(&ParameterCall {
                name: Tags::new(" tool=\"", "\""),
                number: Some(Tags::new(" index=\"", "\"<|sep|>")),
                key: Tags::new("<|open|>argument key=\"", "\""),
                type_attribute: Some(TypeAttribute {
                    open: " type=\"",
                    close: "\"<|sep|>",
                    text: "string",
                    others: &[
                        ("integer", "number"),
                        ("number", "number"),
                        ("boolean", "boolean"),
                        ("null", "null"),
                        ("array", "array"),
                        ("object", "object"),
                    ],
                }),
                value: Tags::new("", "<|close|>argument<|sep|>"),
                between: "",
                ..ParameterCall::INVOKE
            }),
        )
    }],
    ..Dialect::PLAIN
};
