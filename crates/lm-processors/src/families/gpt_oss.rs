//! gpt-oss: the harmony format, in which a reply consists of messages in channels.
//! Source: the published chat template of openai/gpt-oss-120b and the description of the harmony format.

use super::Family;
use crate::dialect::{
    AnswerSyntax, CallBody, CallSyntax, ChannelSyntax, Dialect, MessageKind, MessageSyntax, NamedCall, Tags,
    UnmatchedEnd,
};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<|channel|>", "<|message|>"]],
    model_names: &["gpt-oss"],
    ..Family::of(&DialectProcessor::new(&DIALECT).with_messages(&MESSAGES))
};

const DIALECT: Dialect = Dialect {
    name: "gpt_oss",
    channels: &[ChannelSyntax {
        unmatched_end: UnmatchedEnd::Dropped,
        ..ChannelSyntax::untrimmed(Tags::new("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"))
    }],
    answer: AnswerSyntax { tags: Tags::new("<|channel|>final<|message|>", ""), ..AnswerSyntax::PLAIN },
    calls: &[CallSyntax {
        separator: "<|start|>assistant",
        ..CallSyntax::new(
            Tags::new("<|channel|>commentary to=functions.", "<|call|>"),
            CallBody::Named(NamedCall::new(" <|constrain|>json<|message|>")),
        )
    }],
    ..Dialect::PLAIN
};

const MESSAGES: MessageSyntax = MessageSyntax {
    start: "<|start|>assistant",
    channel: "<|channel|>",
    recipient: "to=",
    text: "<|message|>",
    ends: &["<|end|>", "<|return|>", "<|call|>"],
    names: &[
        ("analysis", MessageKind::Reasoning),
        ("commentary", MessageKind::Answer),
        ("final", MessageKind::Answer),
        ("assistant", MessageKind::Answer),
    ],
    tool_prefix: "functions.",
};
