//! Apertus: a JSON list of objects whose only key is the tool's name.

use super::Family;
use crate::dialect::{
    AnswerSyntax, BeforeCalls, CallBody, CallSyntax, ChannelSyntax, Dialect, JsonCall, JsonObject, Tags,
};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<|tools_prefix|>"]],
    model_names: &["apertus"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "apertus",
    channels: &[ChannelSyntax::new(Tags::new("<|inner_prefix|>", "<|inner_suffix|>"))],
    answer: AnswerSyntax { before_calls: BeforeCalls::Dropped, ..AnswerSyntax::PLAIN },
    calls: &[CallSyntax::new(
        Tags::new("<|tools_prefix|>", "<|tools_suffix|>"),
        CallBody::Json(JsonCall { object: JsonObject::NameIsKey, ..JsonCall::LIST }),
    )],
    ..Dialect::PLAIN
};
