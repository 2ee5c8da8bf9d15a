//! FunctionGemma with LiteRT-LM's templates, which print declarations, arguments and results verbatim.
//! Source: the chat templates for google/functiongemma-270m-it that LiteRT-LM publishes.

use super::{Family, functiongemma};
use crate::dialect::Dialect;
use crate::dialect_processor::DialectProcessor;
use crate::preformatted::Syntax;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<start_function_call>"]],
    ..Family::of(&DialectProcessor::preformatted(&DIALECT, Syntax::Braces("<escape>")))
};

const DIALECT: Dialect = Dialect { name: "functiongemma_preformatted", ..functiongemma::DIALECT };
