//! A model without a known dialect: all text is the answer.

use super::Family;
use crate::dialect::Dialect;
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family::of(&DialectProcessor::unchanged(&DIALECT));

const DIALECT: Dialect = Dialect { name: "generic", ..Dialect::PLAIN };
