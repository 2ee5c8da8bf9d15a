//! Models whose templates always open the reasoning: a reply without markers is all reasoning.

use super::Family;
use super::think_tags::THINK;
use crate::dialect::{ChannelSyntax, Dialect, Unmarked};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    names: &["deepseekr1", "granite_thinking", "nemotron_v3"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "think_opened",
    channels: &[ChannelSyntax { unmarked: Unmarked::Channel, ..THINK }],
    ..Dialect::PLAIN
};
