//! Granite 3.2: reasoning and answer under headings.

use super::Family;
use crate::dialect::{ChannelSyntax, Dialect, Tags, UnmatchedEnd};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    names: &["granite"],
    model_names: &["granite-3.2"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "granite_prose",
    channels: &[ChannelSyntax {
        unmatched_end: UnmatchedEnd::Text,
        ..ChannelSyntax::new(Tags::new("Here is my thought process:", "Here is my response:"))
    }],
    ..Dialect::PLAIN
};
