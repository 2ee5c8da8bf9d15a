//! A model without a known dialect: its text is its answer.

use lm_template::{ToolSpec, Value};

use super::Family;
use crate::parser::{OutputParser, ParserOptions};
use crate::parsers::PlainText;
use crate::processor::ModelDataProcessor;

pub(super) const FAMILY: Family = Family { processor: &Generic, markers: &[], model_names: &[] };

struct Generic;

impl ModelDataProcessor for Generic {
    fn name(&self) -> &'static str {
        "generic"
    }

    /// Tools as they were declared: what the template wants of them is not known.
    fn format_tools(&self, tools: &[ToolSpec]) -> Value {
        if tools.is_empty() { Value::Null } else { tools.iter().map(ToolSpec::to_json).collect() }
    }

    fn parser(&self, _: &ParserOptions) -> Box<dyn OutputParser> {
        Box::new(PlainText)
    }
}
