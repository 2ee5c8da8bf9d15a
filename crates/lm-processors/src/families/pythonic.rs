//! Llama 3.2 and others by prompt: a list of Python calls, without markers.
//! Source: the chat template for Llama 3.2 that vLLM publishes.

use super::Family;
use crate::dialect::{CallBody, CallSyntax, Dialect, PythonCall, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["[func_name1("]],
    model_names: &["toolace"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "pythonic",
    calls: &[CallSyntax::new(Tags::NONE, CallBody::Python(PythonCall::LIST))],
    ..Dialect::PLAIN
};
