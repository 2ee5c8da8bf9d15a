//! A model without a known dialect: all text is the answer.

use super::Family;
use super::dialect_processor::DialectProcessor;
use crate::dialect::Dialect;

pub(super) const FAMILY: Family = Family::of(&DialectProcessor::unchanged(&DIALECT));

const DIALECT: Dialect = Dialect { name: "generic", ..Dialect::PLAIN };
