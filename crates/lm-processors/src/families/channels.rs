//! Reasoning channels that several families share.

use crate::dialect::{Channel, ChannelSyntax};
use crate::event::REASONING;

/// `<think>…</think>`, opened by its marker.
pub(super) const THINK: ChannelSyntax = ChannelSyntax::new(Channel::new(REASONING, "<think>", "</think>"));
