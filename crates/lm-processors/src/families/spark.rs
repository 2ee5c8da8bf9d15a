//! Spark 2.5: calls as in GLM-4.7.
//! Source: the call format of the model's published chat template.

use super::Family;
use super::glm4_xml;
use crate::dialect::Dialect;
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<tool_call>", "<arg_key>", "<|Bot|>"]],
    model_names: &["spark2", "spark-2"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect { name: "spark", ..glm4_xml::DIALECT };
