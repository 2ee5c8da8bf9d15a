//! Command R7B, Command A and Cohere 2 MoE: separate tokens around thinking, action and response.

use super::Family;
use crate::dialect::{
    AnswerSyntax, CallBody, CallSyntax, CallsInside, ChannelSyntax, Dialect, JsonCall, JsonKey, JsonObject,
    Tags, UnmarkedCalls,
};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<|START_ACTION|>"]],
    model_names: &["command-r7b", "command-a"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "cohere_action",
    stripped: &[Tags::new("<co>", ""), Tags::new("</co:", ">")],
    channels: &[ChannelSyntax {
        calls_inside: CallsInside::AtStart,
        ..ChannelSyntax::new(Tags::new("<|START_THINKING|>", "<|END_THINKING|>"))
    }],
    answer: AnswerSyntax {
        tags: Tags::new("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
        dropped: &["<|START_TEXT|>", "<|END_TEXT|>"],
        ..AnswerSyntax::PLAIN
    },
    unmarked: UnmarkedCalls::Text,
    calls_note: "",
    calls: &[CallSyntax::new(Tags::new("<|START_ACTION|>", "<|END_ACTION|>"), CallBody::Json(ACTIONS))],
};

const ACTIONS: JsonCall = JsonCall {
    object: JsonObject::Keys {
        written: &[
            (JsonKey::Id, "tool_call_id"),
            (JsonKey::Name, "tool_name"),
            (JsonKey::Arguments, "parameters"),
        ],
        aliases: &[(JsonKey::Name, "name"), (JsonKey::Arguments, "arguments")],
    },
    ..JsonCall::LINES
};
