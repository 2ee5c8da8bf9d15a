//! Hermes 2/3, Granite 4 and others: calls as JSON in `<tool_call>` tags, reasoning in `<think>` tags.
//! Source: the published chat template of NousResearch/Hermes-2-Pro-Llama-3-8B.

use super::Family;
use super::tagged::Tagged;
use crate::parsers::LineBreakBeforeCall;
use crate::parsers::{TagDialect, Tags};

pub(super) const FAMILY: Family = Family {
    processor: &Tagged { name: "hermes", dialect: &DIALECT },
    markers: &["<tool_call>", "<function-name>"],
    model_names: &["hermes", "granite-4"],
};

const DIALECT: TagDialect = TagDialect {
    reasoning: Tags { open: "<think>", close: "</think>" },
    call: Tags { open: "<tool_call>", close: "</tool_call>" },
    line_break_before_call: LineBreakBeforeCall::Keep,
};
