//! Qwen 2.5, Qwen 3, QwQ and the embedded model: the Hermes tags, each call on a line of its own.
//! Source: the published chat template of Qwen/Qwen3-0.6B, which writes the line break before a call itself.

use super::Family;
use super::tagged::Tagged;
use crate::parsers::LineBreakBeforeCall;
use crate::parsers::{TagDialect, Tags};

pub(super) const FAMILY: Family = Family {
    processor: &Tagged { name: "qwen", dialect: &DIALECT },
    markers: &[r#"<tool_call>\n{"name""#, "<tool_response>", "<|im_start|>"],
    model_names: &["qwen", "qwq"],
};

const DIALECT: TagDialect = TagDialect {
    reasoning: Tags { open: "<think>", close: "</think>" },
    call: Tags { open: "<tool_call>", close: "</tool_call>" },
    line_break_before_call: LineBreakBeforeCall::Drop,
};
