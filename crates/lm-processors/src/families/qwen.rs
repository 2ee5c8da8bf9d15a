//! Qwen 2.5, Qwen 3, QwQ and the embedded model: the Hermes tags, each call on its own line.
//! Source: the published chat template of Qwen/Qwen3-0.6B, which writes the line break before a call itself.

use super::Family;
use super::hermes;
use crate::dialect::Dialect;
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    names: &["qwen3"],
    markers: &[&[r#"<tool_call>\n{"name""#, "<tool_response>", "<|im_start|>"]],
    model_names: &["qwen", "qwq"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect { name: "qwen", ..hermes::DIALECT };
