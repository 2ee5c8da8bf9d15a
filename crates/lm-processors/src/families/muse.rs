//! Muse Glimmer: messages with recipients; those for a tool contain `invoke` elements.
//! Source: the call format of the model's published chat template.

use super::Family;
use crate::dialect::{
    AnswerSyntax, CallBody, CallSyntax, ChannelSyntax, Dialect, MessageKind, MessageSyntax, ParameterCall,
    Tags,
};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<atem:function_calls>"]],
    model_names: &["muse"],
    ..Family::of(&DialectProcessor::new(&DIALECT).with_messages(&MESSAGES))
};

const DIALECT: Dialect = Dialect {
    name: "muse",
    channels: &[ChannelSyntax::untrimmed(Tags::new(" to=self<|message|>", "<|eom|><|start|>assistant"))],
    answer: AnswerSyntax { tags: Tags::new(" to=user<|message|>", ""), ..AnswerSyntax::PLAIN },
    calls: &[CallSyntax {
        section: Tags::lines("<atem:function_calls>", "</atem:function_calls>"),
        separator: "\n",
        ..CallSyntax::new(
            Tags::new("<atem:invoke", "</atem:invoke>"),
            CallBody::Parameters(&ParameterCall {
                key: Tags::new("<atem:parameter name=\"", "\">"),
                value: Tags::new("", "</atem:parameter>"),
                ..ParameterCall::INVOKE
            }),
        )
    }],
    ..Dialect::PLAIN
};

const MESSAGES: MessageSyntax = MessageSyntax {
    start: "<|start|>assistant",
    channel: "",
    recipient: "to=",
    text: "<|message|>",
    ends: &["<|eom|>", "<|eot|>"],
    names: &[("user", MessageKind::Answer), ("self", MessageKind::Reasoning)],
    tool_prefix: "",
};
