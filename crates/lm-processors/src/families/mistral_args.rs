//! Mistral Small 3.2, Devstral, Ministral 3: a token, the name, a token, the arguments.

use super::Family;
use super::mistral_json::{BARE, LIST};
use crate::dialect::{
    CallBody, CallSyntax, ChannelSyntax, Dialect, NamedCall, NamedId, Nameless, Tags, UnmatchedEnd,
};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["[TOOL_CALLS]", "[ARGS]"]],
    model_names: &["mistral-small-3.2", "devstral", "ministral", "magistral"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect =
    Dialect { name: "mistral_args", channels: &[THINK], calls: &[ARGS, LIST, BARE], ..Dialect::PLAIN };

pub(super) const THINK: ChannelSyntax = ChannelSyntax {
    unmatched_end: UnmatchedEnd::Dropped,
    ..ChannelSyntax::untrimmed(Tags::new("[THINK]", "[/THINK]"))
};

/// `[TOOL_CALLS]NAME[ARGS]{…}`, with `[CALL_ID]ID` after the name in some versions.
pub(super) const ARGS: CallSyntax = CallSyntax::new(
    Tags::new("[TOOL_CALLS]", ""),
    CallBody::Named(NamedCall {
        id: NamedId::After("[CALL_ID]"),
        nameless: Nameless::Call,
        ..NamedCall::new("[ARGS]")
    }),
);
