//! A model without a known dialect: its text is its answer.

use super::Family;
use super::dialect_processor::{DialectProcessor, Input};
use crate::dialect::Dialect;

pub(super) const FAMILY: Family = Family {
    processor: &DialectProcessor { dialect: &DIALECT, input: Input::AsGiven },
    markers: &[],
    model_names: &[],
};

const DIALECT: Dialect = Dialect { name: "generic", ..Dialect::PLAIN };
