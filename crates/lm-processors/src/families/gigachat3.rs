//! GigaChat 3 and 3.1: a call is a message of the role `function call`, or follows a `<|function_call|>`
//! token.

use super::Family;
use crate::dialect::{AnswerSyntax, CallBody, CallSyntax, Dialect, JsonCall, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["function call<|role_sep|>"]],
    model_names: &["gigachat"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "gigachat3",
    answer: AnswerSyntax { dropped: &["</s>", "<|message_sep|>"], ..AnswerSyntax::PLAIN },
    calls: &[
        message("<|message_sep|>\n\nfunction call<|role_sep|>"),
        // The same with fewer line breaks, or at the start of the reply.
        message("<|message_sep|>\nfunction call<|role_sep|>"),
        message("<|message_sep|>function call<|role_sep|>"),
        message("function call<|role_sep|>"),
        CallSyntax::new(Tags::new("<|function_call|>", ""), CallBody::Json(JsonCall::ONE)),
    ],
    ..Dialect::PLAIN
};

const fn message(header: &'static str) -> CallSyntax {
    CallSyntax::new(Tags { after_open: "\n", ..Tags::new(header, "") }, CallBody::Json(JsonCall::ONE))
}
