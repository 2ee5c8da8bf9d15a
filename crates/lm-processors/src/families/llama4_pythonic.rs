//! Llama 4: a list of Python calls, with or without markers.
//! Source: the chat templates for Llama 4 that vLLM and axolotl publish.

use super::Family;
use crate::dialect::{AnswerSyntax, CallBody, CallSyntax, Dialect, JsonCall, PythonCall, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["[func_name1(", "<|header_start|>"]],
    model_names: &["llama-4", "llama4"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "llama4_pythonic",
    answer: AnswerSyntax { dropped: &["<|python_end|>"], ..AnswerSyntax::PLAIN },
    calls: &[
        CallSyntax::new(Tags::NONE, CallBody::Python(PythonCall::LIST)),
        CallSyntax::new(Tags::new("<|python_start|>", ""), CallBody::Python(PythonCall::LIST)),
        // JSON, for which the models' own template asks.
        CallSyntax::new(Tags::NONE, CallBody::Json(JsonCall::ONE_WITH_PARAMETERS)),
    ],
    ..Dialect::PLAIN
};
