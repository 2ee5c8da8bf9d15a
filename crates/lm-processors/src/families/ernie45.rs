//! ERNIE 4.5: the Hermes tags; the answer after reasoning is in `<response>` tags.

use super::Family;
use super::hermes;
use crate::dialect::{AnswerSyntax, Dialect};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family =
    Family { model_names: &["ernie-4.5"], ..Family::of(&DialectProcessor::new(&DIALECT)) };

const DIALECT: Dialect = Dialect {
    name: "ernie45",
    answer: AnswerSyntax { dropped: &["<response>", "</response>"], ..AnswerSyntax::PLAIN },
    ..hermes::DIALECT
};
