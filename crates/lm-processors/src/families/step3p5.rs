//! Step 3.5: reasoning opened by the prompt; the line break before `</think>` is layout, all other text is
//! kept.

use super::Family;
use super::think_tags::THINK_UNTRIMMED;
use crate::dialect::{ChannelSyntax, Dialect, Trim, Unmarked};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family =
    Family { model_names: &["step-3.5", "step3p5"], ..Family::of(&DialectProcessor::new(&DIALECT)) };

const DIALECT: Dialect = Dialect {
    name: "step3p5",
    channels: &[ChannelSyntax { unmarked: Unmarked::Channel, trim_end: Trim::LineBreaks, ..THINK_UNTRIMMED }],
    ..Dialect::PLAIN
};
