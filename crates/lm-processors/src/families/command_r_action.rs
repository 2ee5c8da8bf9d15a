//! Command R and R+: a fenced JSON list of actions.

use super::Family;
use crate::dialect::{AnswerSyntax, CallBody, CallSyntax, Dialect, JsonCall, JsonKey, JsonObject, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["Action:", "```json", "tool_name"]],
    model_names: &["command-r"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "command_r_action",
    answer: AnswerSyntax { dropped: &["<|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>"], ..AnswerSyntax::PLAIN },
    calls: &[
        CallSyntax::new(Tags::lines("Action: ```json", "```"), CallBody::Json(ACTIONS)),
        CallSyntax::new(Tags::lines("Action:```json", "```"), CallBody::Json(ACTIONS)),
        CallSyntax::new(Tags::lines("Action:\n```json", "```"), CallBody::Json(ACTIONS)),
    ],
    ..Dialect::PLAIN
};

const ACTIONS: JsonCall = JsonCall {
    object: JsonObject::Keys {
        written: &[(JsonKey::Name, "tool_name"), (JsonKey::Arguments, "parameters")],
        aliases: &[],
    },
    ..JsonCall::LINES
};
