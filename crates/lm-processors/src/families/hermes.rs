//! Hermes 2/3, Granite 4 and others: calls as JSON in `<tool_call>` tags, reasoning in `<think>` tags.
//! Source: the published chat template of NousResearch/Hermes-2-Pro-Llama-3-8B.

use super::Family;
use super::channels::THINK;
use super::dialect_processor::{DialectProcessor, Input};
use crate::dialect::{CallBody, CallSyntax, Dialect, JsonCall, Tags};

pub(super) const FAMILY: Family = Family {
    processor: &DialectProcessor { dialect: &DIALECT, input: Input::Text },
    markers: &["<tool_call>", "<function-name>"],
    model_names: &["hermes", "granite-4"],
};

pub(super) const DIALECT: Dialect = Dialect {
    name: "hermes",
    channels: &[THINK],
    calls: &[CallSyntax {
        separator: "\n",
        ..CallSyntax::new(Tags::lines("<tool_call>", "</tool_call>"), CallBody::Json(JsonCall::ONE))
    }],
    ..Dialect::PLAIN
};
