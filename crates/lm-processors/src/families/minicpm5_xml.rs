//! MiniCPM5: `function` and `param` elements, with optional CDATA values.
//! Source: the published chat template of openbmb/MiniCPM5-1B.

use super::Family;
use super::think_tags::THINK;
use crate::dialect::{Accepted, CallBody, CallSyntax, Dialect, ParameterCall, Tags, Undeclared, ValueText};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<function name=", "<param name="]],
    model_names: &["minicpm5"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "minicpm5_xml",
    channels: &[THINK],
    calls: &[CallSyntax {
        separator: "\n",
        undeclared: Undeclared::Malformed,
        ..CallSyntax::new(
            Tags::new("<function", "</function>"),
            CallBody::Parameters(&ParameterCall {
                key: Tags::new("<param name=\"", "\">"),
                value: Tags::new("", "</param>"),
                written: ValueText::VerbatimOrCdata,
                accepted: Accepted::Declared,
                between: "",
                ..ParameterCall::INVOKE
            }),
        )
    }],
    ..Dialect::PLAIN
};
