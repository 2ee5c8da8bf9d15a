//! Models that reason in `<think>` tags and have no known call syntax; the channel that most families share.

use super::Family;
use crate::dialect::{ChannelSyntax, Dialect, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family =
    Family { names: &["holo2"], markers: &[&["</think>"]], ..Family::of(&DialectProcessor::new(&DIALECT)) };

const DIALECT: Dialect = Dialect { name: "think_tags", channels: &[THINK], ..Dialect::PLAIN };

/// `<think>…</think>`.
pub(super) const THINK: ChannelSyntax = ChannelSyntax::new(Tags::lines("<think>", "</think>"));

/// The same without trimming.
pub(super) const THINK_UNTRIMMED: ChannelSyntax = ChannelSyntax::untrimmed(Tags::new("<think>", "</think>"));
