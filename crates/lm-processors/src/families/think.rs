//! Models that reason in `<think>` tags and whose calls are not known; the channel that most families share.

use super::Family;
use super::dialect_processor::DialectProcessor;
use crate::dialect::{ChannelSyntax, Dialect, Tags};

pub(super) const FAMILY: Family =
    Family { names: &["holo2"], markers: &[&["</think>"]], ..Family::of(&DialectProcessor::new(&DIALECT)) };

const DIALECT: Dialect = Dialect { name: "think_tags", channels: &[THINK], ..Dialect::PLAIN };

/// `<think>…</think>`.
pub(super) const THINK: ChannelSyntax = ChannelSyntax::new(Tags::lines("<think>", "</think>"));

/// The same, kept to the letter.
pub(super) const THINK_UNTRIMMED: ChannelSyntax = ChannelSyntax::untrimmed(Tags::new("<think>", "</think>"));
