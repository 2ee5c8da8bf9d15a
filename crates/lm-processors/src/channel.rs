//! The channels of a reply beside its answer.

use std::borrow::Cow;

use crate::dialect::{ChannelSyntax, Tags};

/// A channel of a reply beside its answer: its name and the texts around it.
///
/// Families have theirs; a caller who knows better, from a template, a tokenizer or a model card, names others in
/// [`ParserOptions::channels`](crate::ParserOptions::channels).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// The name the channel's text is reported under, such as [`REASONING`](crate::REASONING).
    pub name: Cow<'static, str>,
    /// The text that opens it.
    pub start: Cow<'static, str>,
    /// The text that ends it.
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
    /// The channels of a family, or those a caller names instead, which follow the most frequent rules.
    pub(crate) fn all(family: &[ChannelSyntax], named: Option<&[Channel]>) -> Vec<Self> {
        let usual =
            |channel: &Channel| Self { channel: channel.clone(), syntax: ChannelSyntax::new(Tags::NONE) };
        match named {
            Some(named) => named.iter().map(usual).collect(),
            None => family.iter().map(|syntax| Self { channel: syntax.into(), syntax: *syntax }).collect(),
        }
    }
}
