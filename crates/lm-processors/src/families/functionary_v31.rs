//! Functionary v3.1: the tool's name in the opening tag.

use super::Family;
use crate::dialect::{CallBody, CallSyntax, Dialect, NamedCall, Tags, Undeclared};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<function=", "</function>", "<|start_header_id|>"]],
    model_names: &["functionary-medium-v3.1", "functionary-small-v3.1"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect { name: "functionary_v31", calls: &[CALLS], ..Dialect::PLAIN };

/// `<function=f>{…}</function>`, in tags that text may contain as well.
pub(super) const CALLS: CallSyntax = CallSyntax {
    undeclared: Undeclared::Text,
    ..CallSyntax::new(Tags::new("<function=", "</function>"), CallBody::Named(NamedCall::new(">")))
};
