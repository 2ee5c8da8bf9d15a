//! dots: `invoke` elements in a section.
//! Source: the call format of rednote-hilab's published chat template.

use super::Family;
use super::think_tags::THINK;
use crate::dialect::{CallBody, CallSyntax, Dialect, ParameterCall, Tags, Undeclared};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<dots_function_call>"]],
    model_names: &["dots.llm2", "dots2"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "dots",
    channels: &[THINK],
    calls: &[CallSyntax {
        section: Tags::new("<dots_function_call>", "</dots_function_call>"),
        undeclared: Undeclared::Malformed,
        ..CallSyntax::new(
            Tags::new("<invoke", "</invoke>"),
            CallBody::Parameters(&ParameterCall { between: "", ..ParameterCall::INVOKE }),
        )
    }],
    ..Dialect::PLAIN
};
