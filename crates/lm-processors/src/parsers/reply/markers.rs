//! Markers of a dialect, and their role in the answer.

use std::borrow::Cow;

use crate::channel::ReplyChannel;
use crate::dialect::{CallBody, CallSyntax, Count, Dialect, Tags, UnmatchedEnd};
use crate::parsers::recovery::{Departure, Tolerance};

/// Role of a marker in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkerRole {
    ChannelStart(usize),
    /// End marker of a channel that is not open.
    UnmatchedEnd(usize),
    /// Start of calls, in one of the syntaxes with this marker; the index is that of the first.
    Calls(usize),
    /// Start of one call of this syntax, outside of its section.
    InnerCall(usize),
    /// Closing marker of calls while none is open.
    CallsEnd,
    /// Dropped.
    Dropped,
}

/// Marker that ends a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChannelEnd {
    /// The channel's end marker.
    Own,
    /// A marker of calls, or the answer's own, which may end a channel without its end marker.
    Next,
}

/// Markers that are searched for.
#[derive(Debug)]
pub(super) struct Markers {
    /// In an answer.
    pub(super) in_answer: Vec<(MarkerRole, Cow<'static, str>)>,
    /// In a channel, besides its end marker.
    pub(super) after_channel: Vec<(ChannelEnd, &'static str)>,
}

impl Markers {
    pub(super) fn new(
        dialect: &Dialect,
        channels: &[ReplyChannel],
        syntaxes: &'static [CallSyntax],
        tolerance: Tolerance,
    ) -> Self {
        let mut in_answer = in_answer(dialect, channels, syntaxes);
        let has_stray = tolerance.accepts(Departure::StrayMarker);
        in_answer.retain(|(role, text)| !text.is_empty() && (has_stray || is_regular(*role, channels)));
        let after_channel = after_channel(dialect).map(|marker| (ChannelEnd::Next, marker)).collect();
        Self { in_answer, after_channel }
    }
}

/// Markers that may end a channel of the dialect without its end marker: those of calls, and the answer's
/// own.
pub(crate) fn after_channel(dialect: &Dialect) -> impl Iterator<Item = &'static str> {
    let answer = dialect.answer.tags.open;
    let calls = dialect.calls.iter().filter(|syntax| !is_bare(syntax)).map(opener);
    let inner = dialect.calls.iter().map(inner_opener).filter(|marker| is_distinctive(marker));
    calls.chain(inner).chain((!answer.is_empty()).then_some(answer))
}

/// Returns true if a marker has a role in a reply without defects.
fn is_regular(role: MarkerRole, channels: &[ReplyChannel]) -> bool {
    match role {
        MarkerRole::InnerCall(_) | MarkerRole::CallsEnd => false,
        MarkerRole::UnmatchedEnd(number) => {
            matches!(
                channels[number].syntax.unmatched_end,
                UnmatchedEnd::DroppedAtStart | UnmatchedEnd::Dropped
            )
        }
        MarkerRole::ChannelStart(_) | MarkerRole::Calls(_) | MarkerRole::Dropped => true,
    }
}

fn in_answer(
    dialect: &Dialect,
    channels: &[ReplyChannel],
    syntaxes: &'static [CallSyntax],
) -> Vec<(MarkerRole, Cow<'static, str>)> {
    let mut markers: Vec<(MarkerRole, Cow<'static, str>)> = Vec::new();
    for (number, ReplyChannel { channel, .. }) in channels.iter().enumerate() {
        markers.push((MarkerRole::ChannelStart(number), channel.start.clone()));
        markers.push((MarkerRole::UnmatchedEnd(number), channel.end.clone()));
    }
    for (number, syntax) in syntaxes.iter().enumerate() {
        let marker = opener(syntax);
        if syntaxes[..number].iter().all(|earlier| opener(earlier) != marker) {
            markers.push((MarkerRole::Calls(number), marker.into()));
        }
    }
    let Tags { open, close, .. } = dialect.answer.tags;
    let dropped = [open, close].into_iter().chain(dialect.answer.dropped.iter().copied());
    markers.extend(dropped.map(|marker| (MarkerRole::Dropped, marker.into())));
    for (number, syntax) in syntaxes.iter().enumerate() {
        markers.push((MarkerRole::InnerCall(number), inner_opener(syntax).into()));
        for close in [syntax.call.close, syntax.section.close] {
            // A fence or bracket is not a marker of calls while none is open.
            if close.contains(char::is_alphabetic) {
                markers.push((MarkerRole::CallsEnd, close.into()));
            }
        }
    }
    markers
}

/// Marker of a single call inside a section; empty if the syntax has no section.
pub(super) fn inner_opener(syntax: &CallSyntax) -> &'static str {
    if syntax.section.open.is_empty() { "" } else { syntax.call.open }
}

/// Returns true if a marker has special characters, unlike a plain element such as `<invoke`, which any text
/// may contain.
pub(super) fn is_distinctive(marker: &str) -> bool {
    let name = marker.trim_start_matches('<').trim_end_matches('>');
    name.contains(|c: char| !c.is_ascii_alphanumeric() && !"_-:".contains(c))
}

/// Returns true if the calls of a syntax have no start marker.
pub(super) fn is_bare(syntax: &CallSyntax) -> bool {
    syntax.section.open.is_empty() && syntax.call.open.is_empty()
}

/// The text that marks the start of calls.
pub(super) fn opener(syntax: &CallSyntax) -> &'static str {
    match (syntax.section.open, syntax.call.open) {
        ("", "") => bare_opener(&syntax.body),
        ("", call) => call,
        (section, _) => section,
    }
}

/// The text that a call without a marker starts with.
pub(super) fn bare_opener(body: &CallBody) -> &'static str {
    match body {
        CallBody::Json(json) if json.count == Count::One => "{",
        CallBody::Json(_) | CallBody::Python(_) => "[",
        CallBody::Named(named) => named.before_name,
        CallBody::Parameters(parameters) => parameters.name.open,
        CallBody::Braces(braces) => braces.before_name,
    }
}

/// Returns true if a body may start with `text`; `None` if more text is needed to decide.
pub(super) fn may_start_with(body: &CallBody, text: &str) -> Option<bool> {
    let text = text.trim_start();
    match body {
        CallBody::Json(_) => Some(matches!(text.bytes().next()?, b'{' | b'`') || begins_as_list(text)?),
        CallBody::Named(_) => begins_as_list(text).map(|list| !list),
        CallBody::Parameters(call) if call.name.open.starts_with('<') => Some(text.bytes().next()? == b'<'),
        CallBody::Parameters(_) => {
            Some(!matches!(text.bytes().next()?, b'{' | b'`') && !begins_as_list(text)?)
        }
        CallBody::Python(_) => Some(text.bytes().next()? != b'{' && !begins_as_json_list(text)?),
        CallBody::Braces(_) => Some(true),
    }
}

/// Like [`begins_as_list`], without the empty list.
fn begins_as_json_list(text: &str) -> Option<bool> {
    let Some(rest) = text.strip_prefix('[') else { return Some(false) };
    rest.trim_start().bytes().next().map(|byte| byte == b'{')
}

/// Returns true if `text` starts like a JSON list of objects.
fn begins_as_list(text: &str) -> Option<bool> {
    let Some(rest) = text.strip_prefix('[') else { return (!text.is_empty()).then_some(false) };
    rest.trim_start().bytes().next().map(|byte| byte == b'{' || byte == b']')
}
