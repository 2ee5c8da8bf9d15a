//! MedGemma and other Gemma 3 models that reason between two unused tokens.

use super::Family;
use crate::dialect::{ChannelSyntax, Dialect, Tags, UnmatchedEnd};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    names: &["gemma_thought_unused_tokens"],
    model_names: &["medgemma"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "medgemma",
    channels: &[ChannelSyntax {
        label: "thought\n",
        unmatched_end: UnmatchedEnd::Dropped,
        ..ChannelSyntax::new(Tags::new("<unused94>", "<unused95>"))
    }],
    ..Dialect::PLAIN
};
