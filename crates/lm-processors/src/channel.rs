//! Channels of a reply besides its answer.

use std::borrow::Cow;

use crate::dialect::{ChannelSyntax, Tags};

/// A channel of a reply besides its answer: its name and its markers.
///
/// Families define their own; a caller that knows others, from a template, a tokenizer or a model card,
/// passes them in [`ParserOptions::channels`](crate::ParserOptions::channels).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// Name under which the channel's text is reported, such as `reasoning`.
    pub name: Cow<'static, str>,
    /// Start marker.
    pub start: Cow<'static, str>,
    /// End marker.
    pub end: Cow<'static, str>,
}

/// A channel with its family's rules.
#[derive(Debug, Clone)]
pub(crate) struct ReplyChannel {
    pub(crate) channel: Channel,
    pub(crate) syntax: ChannelSyntax,
}

impl From<&ChannelSyntax> for Channel {
    fn from(syntax: &ChannelSyntax) -> Self {
        let Tags { open, close, .. } = syntax.tags;
        Self { name: syntax.name.into(), start: open.into(), end: close.into() }
    }
}

impl ReplyChannel {
    /// Channels of a family, or those named by the caller. A named channel with the markers of one of the
    /// family follows its rules, others the most common ones.
    pub(crate) fn all(family: &[ChannelSyntax], named: Option<&[Channel]>) -> Vec<Self> {
        let of_family = |channel: &Channel| {
            let same = |syntax: &&ChannelSyntax| {
                (syntax.tags.open, syntax.tags.close) == (&*channel.start, &*channel.end)
            };
            family.iter().find(same).copied().unwrap_or(ChannelSyntax::new(Tags::NONE))
        };
        let usual = |channel: &Channel| Self { channel: channel.clone(), syntax: of_family(channel) };
        match named {
            Some(named) => named.iter().map(usual).collect(),
            None => family.iter().map(|syntax| Self { channel: syntax.into(), syntax: *syntax }).collect(),
        }
    }
}
