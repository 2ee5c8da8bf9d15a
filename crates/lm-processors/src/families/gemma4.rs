//! Gemma 4: arguments in braces, delimited strings; reasoning in a channel named `thought`.
//! Source: the published chat template of google/gemma-4-31B-it.

use super::Family;
use crate::dialect::{
    AnswerSyntax, BeforeCalls, BraceCall, CallBody, CallSyntax, ChannelSyntax, Dialect, Tags, Trim,
    UnmatchedEnd,
};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<|tool_call>"]],
    model_names: &["gemma-4"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "gemma4",
    channels: &[ChannelSyntax {
        label: "thought\n",
        unmatched_end: UnmatchedEnd::Dropped,
        trim_after: Trim::Nothing,
        ..ChannelSyntax::new(Tags::new("<|channel>", "<channel|>"))
    }],
    answer: AnswerSyntax {
        dropped: &["<turn|>", "<|tool_response>"],
        before_calls: BeforeCalls::Dropped,
        ..AnswerSyntax::PLAIN
    },
    calls: &[CallSyntax::new(
        Tags::new("<|tool_call>", "<tool_call|>"),
        CallBody::Braces(BraceCall { before_name: "call:", quote: "<|\"|>" }),
    )],
    ..Dialect::PLAIN
};
