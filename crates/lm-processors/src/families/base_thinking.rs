//! Reasoning in `<test:think>` tags, opened by the prompt, as in test suites.

use super::Family;
use crate::dialect::{ChannelSyntax, Dialect, Tags, Unmarked};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family::of(&DialectProcessor::new(&DIALECT));

const DIALECT: Dialect = Dialect {
    name: "base_thinking",
    channels: &[ChannelSyntax {
        unmarked: Unmarked::Channel,
        ..ChannelSyntax::new(Tags::new("<test:think>", "</test:think>"))
    }],
    ..Dialect::PLAIN
};
