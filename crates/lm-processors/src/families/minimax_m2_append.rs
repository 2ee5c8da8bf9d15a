//! MiniMax M2 for clients that expect the reasoning in the answer, with its tags.

use super::Family;
use super::think_tags::THINK;
use crate::dialect::{ChannelSyntax, Dialect, Place, Unmarked};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family::of(&DialectProcessor::new(&DIALECT));

const DIALECT: Dialect = Dialect {
    name: "minimax_m2_append",
    channels: &[ChannelSyntax { unmarked: Unmarked::Channel, place: Place::InAnswer, ..THINK }],
    ..Dialect::PLAIN
};
