//! Messages with recipients, and calls as `invoke` elements outside of them: a response template format of
//! the transformers library. Source: the `response_schema` examples of transformers 5.

use super::Family;
use crate::dialect::{
    AnswerSyntax, CallBody, CallSyntax, ChannelSyntax, Dialect, MessageKind, MessageSyntax, ParameterCall,
    Tags, Trim,
};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family::of(&DialectProcessor::new(&DIALECT).with_messages(&MESSAGES));

const DIALECT: Dialect = Dialect {
    name: "hf_response_template_invoke",
    channels: &[ChannelSyntax::untrimmed(Tags::new("to=self<|msg|>", "<|pause|>"))],
    answer: AnswerSyntax {
        tags: Tags::new("to=user<|msg|>", ""),
        trim: Trim::Whitespace,
        ..AnswerSyntax::PLAIN
    },
    calls: &[CallSyntax::new(
        Tags::new("<invoke", "</invoke>"),
        CallBody::Parameters(&ParameterCall {
            key: Tags::new("<param name=\"", "\">"),
            value: Tags::new("", "</param>"),
            between: "",
            ..ParameterCall::INVOKE
        }),
    )],
    ..Dialect::PLAIN
};

const MESSAGES: MessageSyntax = MessageSyntax {
    start: "<|begin|>assistant",
    channel: "",
    recipient: "to=",
    text: "<|msg|>",
    ends: &["<|pause|>", "<|end|>"],
    names: &[("user", MessageKind::Answer), ("note", MessageKind::Answer), ("self", MessageKind::Reasoning)],
    tool_prefix: "",
};
