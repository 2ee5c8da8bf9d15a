//! MiniMax M2 for clients that expect the reasoning in the answer, with its tags.

use super::Family;
use super::dialect_processor::DialectProcessor;
use super::think::THINK;
use crate::dialect::{ChannelSyntax, Dialect, Place, Unmarked};

pub(super) const FAMILY: Family = Family::of(&DialectProcessor::new(&DIALECT));

const DIALECT: Dialect = Dialect {
    name: "minimax_m2_append",
    channels: &[ChannelSyntax { unmarked: Unmarked::Channel, place: Place::InAnswer, ..THINK }],
    ..Dialect::PLAIN
};
