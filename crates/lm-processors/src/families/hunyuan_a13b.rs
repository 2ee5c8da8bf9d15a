//! Hunyuan A13B: calls as a JSON list in `<tool_calls>` tags; the answer after reasoning in `<answer>` tags.

use super::Family;
use super::think_tags::THINK;
use crate::dialect::{AnswerSyntax, CallBody, CallSyntax, Dialect, JsonCall, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    names: &["hunyuan"],
    model_names: &["hunyuan-a13b"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

/// `<tool_calls>[{"name": …, "arguments": …}]</tool_calls>`.
pub(super) const CALLS: CallSyntax =
    CallSyntax::new(Tags::new("<tool_calls>", "</tool_calls>"), CallBody::Json(JsonCall::LIST));

const DIALECT: Dialect = Dialect {
    name: "hunyuan_a13b",
    channels: &[THINK],
    answer: AnswerSyntax {
        dropped: &["<answer>\n", "\n</answer>", "<answer>", "</answer>"],
        ..AnswerSyntax::PLAIN
    },
    calls: &[CALLS],
    ..Dialect::PLAIN
};
