//! FunctionGemma: arguments in braces, strings between `<escape>` delimiters.
//! Source: the published chat template of google/functiongemma-270m-it.

use super::Family;
use crate::dialect::{AnswerSyntax, BraceCall, CallBody, CallSyntax, Dialect, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<start_function_call>", "<escape>"]],
    model_names: &["functiongemma"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

pub(super) const DIALECT: Dialect = Dialect {
    name: "functiongemma",
    // Start of the tool's response, at which the model stops.
    answer: AnswerSyntax { dropped: &["<start_function_response>"], ..AnswerSyntax::PLAIN },
    calls: &[CallSyntax::new(
        Tags::new("<start_function_call>", "<end_function_call>"),
        CallBody::Braces(BraceCall { before_name: "call:", quote: "<escape>" }),
    )],
    ..Dialect::PLAIN
};
