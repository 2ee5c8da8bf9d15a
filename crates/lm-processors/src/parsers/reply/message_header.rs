//! Headers of messages: their end, and their meaning.

use crate::declared_names::Declared;
use crate::dialect::{MessageKind, MessageSyntax};
use crate::parsers::marker_scan::{Scan, scan};
use crate::parsers::tools::Tools;

/// Maximum length of a header; longer text is not a header.
pub(super) const MAX_HEADER_BYTES: usize = 1 << 10;

/// Texts that end a tool's name in a header.
const RECIPIENT_ENDS: &[&str] = &[" ", "\n", "<"];

/// Marker of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    /// Start of a message or a header.
    Start,
    /// End of the header.
    Text,
    /// End of the message.
    End,
}

/// The given markers, and the ends of messages.
pub(super) fn markers(
    syntax: &MessageSyntax,
    given: [(Marker, &'static str); 2],
) -> Vec<(Marker, &'static str)> {
    given.into_iter().chain(syntax.ends.iter().map(|end| (Marker::End, *end))).collect()
}

/// Header of a message at the start of a text.
pub(super) enum Header {
    /// Complete: its end marker starts at this byte.
    Complete(usize),
    /// Undecided until more text arrives.
    Open,
    /// No header; a marker of this length starts the text.
    Absent(usize),
}

impl Header {
    /// Header at the start of `text`, which ends before the next message starts and before this one ends.
    /// `ended` is true if no more text follows.
    pub(super) fn at(text: &str, syntax: &MessageSyntax, ended: bool) -> Self {
        let MessageSyntax { start, channel, recipient, text: end, .. } = *syntax;
        let begins = |part: &&str| !part.is_empty() && text.starts_with(*part);
        let Some(first) = [channel, recipient].into_iter().find(begins) else {
            let may_start_with = [start, channel, recipient].iter().any(|part| part.starts_with(text));
            let open = text.is_empty() || may_start_with && !ended;
            return if open { Self::Open } else { Self::Absent(0) };
        };
        let markers = markers(syntax, [(Marker::Text, end), (Marker::Start, start)]);
        let inside = &text[first.len()..];
        match scan(inside, &markers, ended) {
            Scan::Found { marker: Marker::Text, start, .. } if first.len() + start <= MAX_HEADER_BYTES => {
                Self::Complete(first.len() + start)
            }
            Scan::Clear { until } if !ended && first.len() + until <= MAX_HEADER_BYTES => Self::Open,
            _ => Self::Absent(first.len()),
        }
    }
}

/// Kind and recipient of the message with this header.
pub(super) fn meaning(header: &str, syntax: &MessageSyntax, tools: &Tools) -> (MessageKind, String) {
    let known = |name: &str| syntax.names.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
    let recipient = word(header, syntax.recipient, syntax, tools).unwrap_or_default();
    let by_recipient = known(recipient);
    if by_recipient.is_none() && !recipient.is_empty() {
        return (MessageKind::Call, recipient.to_owned());
    }
    let by_channel = word(header, syntax.channel, syntax, tools).and_then(known);
    (by_channel.or(by_recipient).unwrap_or(MessageKind::Answer), recipient.to_owned())
}

/// The word after the last `marker` in a header.
fn word<'t>(header: &'t str, marker: &str, syntax: &MessageSyntax, tools: &Tools) -> Option<&'t str> {
    let start = header.rfind(marker).filter(|_| !marker.is_empty())? + marker.len();
    let rest = header[start..].trim_start();
    let tool = rest.strip_prefix(syntax.tool_prefix).unwrap_or(rest);
    let len = match tools.match_name(tool, RECIPIENT_ENDS) {
        Declared::Found(name) => rest.len() - tool.len() + name.len(),
        _ if tools.declares(tool) => rest.len(),
        _ => rest.find(|c: char| c.is_whitespace() || c == '<').unwrap_or(rest.len()),
    };
    Some(&rest[..len])
}
