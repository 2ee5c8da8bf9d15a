//! Laguna: calls as in GLM-4.7.
//! Source: the call format of poolside's published chat templates.

use super::Family;
use super::glm4_xml;
use crate::dialect::Dialect;
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<tool_call>", "<arg_key>", "<system>"]],
    model_names: &["laguna"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect { name: "poolside_xml", ..glm4_xml::DIALECT };
