//! LongCat: the Hermes form with its own tags.

use super::Family;
use super::hermes;
use crate::dialect::{CallSyntax, ChannelSyntax, Dialect, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family =
    Family { model_names: &["longcat"], ..Family::of(&DialectProcessor::new(&DIALECT)) };

const DIALECT: Dialect = Dialect {
    name: "longcat",
    channels: &[ChannelSyntax::new(Tags::new("<longcat_think>", "</longcat_think>"))],
    calls: &[CallSyntax { call: Tags::new("<longcat_tool_call>", "</longcat_tool_call>"), ..hermes::CALLS }],
    ..Dialect::PLAIN
};
