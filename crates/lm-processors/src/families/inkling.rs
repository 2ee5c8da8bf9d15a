//! Inkling: a reply is a sequence of messages, whose first token states the kind.

use super::Family;
use crate::dialect::{
    AnswerSyntax, CallBody, CallSyntax, ChannelSyntax, Dialect, JsonCall, JsonKey, JsonObject, Tags,
    UnmatchedEnd,
};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<|content_invoke_tool_json|>"]],
    model_names: &["inkling"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "inkling",
    channels: &[ChannelSyntax {
        unmatched_end: UnmatchedEnd::Dropped,
        ..ChannelSyntax::untrimmed(Tags::new("<|content_thinking|>", "<|end_message|>"))
    }],
    answer: AnswerSyntax {
        tags: Tags::new("<|content_text|>", "<|end_message|>"),
        dropped: &[
            "<|message_model|>",
            "<|content_model_end_sampling|>",
            "<|content_invoke_tool_text|>",
            "<|content_tool_error|>",
        ],
        ..AnswerSyntax::PLAIN
    },
    calls: &[CallSyntax {
        separator: "<|message_model|>",
        ..CallSyntax::new(
            Tags::new("<|content_invoke_tool_json|>", "<|end_message|>"),
            CallBody::Json(JsonCall {
                object: JsonObject::Keys {
                    written: &[(JsonKey::Name, "name"), (JsonKey::Arguments, "args")],
                    aliases: &[(JsonKey::Arguments, "arguments")],
                },
                colon: ":",
                comma: ",",
                ..JsonCall::ONE
            }),
        )
    }],
    ..Dialect::PLAIN
};
