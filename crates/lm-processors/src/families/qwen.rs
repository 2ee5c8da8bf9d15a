//! Qwen 2.5, Qwen 3, QwQ and the embedded model: the Hermes tags, each call on a line of its own.
//! Source: the published chat template of Qwen/Qwen3-0.6B, which writes the line break before a call itself.

use super::Family;
use super::dialect_processor::{DialectProcessor, Input};
use super::hermes;
use crate::dialect::{AnswerSyntax, BeforeCalls, Dialect};

pub(super) const FAMILY: Family = Family {
    processor: &DialectProcessor { dialect: &DIALECT, input: Input::Text },
    markers: &[r#"<tool_call>\n{"name""#, "<tool_response>", "<|im_start|>"],
    model_names: &["qwen", "qwq"],
};

const DIALECT: Dialect = Dialect {
    name: "qwen",
    answer: AnswerSyntax { before_calls: BeforeCalls::Layout("\n"), ..AnswerSyntax::PLAIN },
    ..hermes::DIALECT
};
