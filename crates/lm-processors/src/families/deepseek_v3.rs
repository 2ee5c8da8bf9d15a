//! DeepSeek V3 and R1: calls in a section, with fenced arguments.

use super::Family;
use super::think_tags::THINK;
use crate::dialect::{CallBody, CallSyntax, Dialect, NamedCall, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "```json"]],
    model_names: &["deepseek-r1", "deepseek-v3"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "deepseek_v3",
    channels: &[THINK],
    calls: &[
        CallSyntax { body: FENCED, separator: "\n", ..CALLS },
        // Low lines in the markers, as models write that lack them as tokens.
        CallSyntax {
            section: Tags::new("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"),
            separator: "\n",
            ..CallSyntax::new(
                Tags::new("<｜tool_call_begin｜>", "<｜tool_call_end｜>"),
                CallBody::Named(NamedCall { before_name: "function<｜tool_sep｜>", ..FENCED_NAME }),
            )
        },
    ],
    ..Dialect::PLAIN
};

const FENCED: CallBody = CallBody::Named(FENCED_NAME);
const FENCED_NAME: NamedCall = NamedCall {
    before_name: BEFORE_NAME,
    after_arguments: "\n```",
    other: ("", AFTER_NAME),
    ..NamedCall::new("\n```json\n")
};

/// Text before a name in V3 and R1.
const BEFORE_NAME: &str = "function<｜tool▁sep｜>";
/// Text after a name in V3.1.
const AFTER_NAME: &str = "<｜tool▁sep｜>";

/// Markers of DeepSeek's calls, and the body of V3.1.
pub(super) const CALLS: CallSyntax = CallSyntax {
    section: Tags::new("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
    ..CallSyntax::new(
        Tags::new("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"),
        CallBody::Named(NamedCall { other: (BEFORE_NAME, ""), ..NamedCall::new(AFTER_NAME) }),
    )
};
