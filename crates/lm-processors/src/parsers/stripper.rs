//! Parts of the text that no caller wants, such as citation markers.

use super::marker_scan::{Scan, scan};
use super::text_buffer::TextBuffer;
use crate::dialect::Tags;
use crate::event::ProcessorEvent;
use crate::parser::OutputParser;

/// Maximum length of a stripped part; longer text is kept.
const MAX_STRIPPED_BYTES: usize = 1 << 10;

/// Parser that strips the parts in the given tags from the text of the answer and of the channels.
pub(crate) struct StrippedParser<P> {
    inner: P,
    stripper: Stripper,
    /// Kind of the last text, as an event with empty text.
    kind: Option<ProcessorEvent>,
}

impl<P: OutputParser> StrippedParser<P> {
    pub(crate) fn new(inner: P, tags: &'static [Tags]) -> Self {
        Self { inner, stripper: Stripper::new(tags), kind: None }
    }

    fn stripped(&mut self, events: Vec<ProcessorEvent>) -> Vec<ProcessorEvent> {
        if self.stripper.openings.is_empty() {
            return events;
        }
        let mut out = Vec::new();
        for mut event in events {
            let (ProcessorEvent::Text(text) | ProcessorEvent::Channel { text, .. }) = &mut event else {
                self.end_text(&mut out);
                out.push(event);
                continue;
            };
            let text = std::mem::take(text);
            if self.kind.as_ref() != Some(&event) {
                self.end_text(&mut out);
                self.kind = Some(event);
            }
            let text = self.stripper.push(&text, false);
            self.emit(text, &mut out);
        }
        out
    }

    /// Ends a run of text of one kind: a partial marker at its end is text.
    fn end_text(&mut self, events: &mut Vec<ProcessorEvent>) {
        let text = self.stripper.push("", true);
        self.emit(text, events);
        self.kind = None;
    }

    fn emit(&self, more: String, events: &mut Vec<ProcessorEvent>) {
        let mut event = self.kind.clone().filter(|_| !more.is_empty());
        if let Some(ProcessorEvent::Text(text) | ProcessorEvent::Channel { text, .. }) = &mut event {
            *text = more;
        }
        events.extend(event);
    }
}

impl<P: OutputParser> OutputParser for StrippedParser<P> {
    fn push(&mut self, delta: &str) -> Vec<ProcessorEvent> {
        let events = self.inner.push(delta);
        self.stripped(events)
    }

    fn finish(&mut self) -> Vec<ProcessorEvent> {
        let events = self.inner.finish();
        let mut events = self.stripped(events);
        self.end_text(&mut events);
        events
    }
}

/// Removes the parts in the given tags from streamed text.
#[derive(Debug)]
struct Stripper {
    /// Tags of the stripped parts, with the opening ones.
    openings: Vec<(Tags, &'static str)>,
    /// Undecided text.
    held: TextBuffer,
    /// Tags of the part at the start of `held`, and the number of bytes searched for its end.
    inside: Option<(Tags, usize)>,
}

impl Stripper {
    fn new(tags: &'static [Tags]) -> Self {
        let openings = tags.iter().map(|tags| (*tags, tags.open)).collect();
        Self { openings, held: TextBuffer::default(), inside: None }
    }

    /// Adds text, the last one if `ended`; returns the text that is certain.
    fn push(&mut self, text: &str, ended: bool) -> String {
        self.held.push(text);
        let mut out = String::new();
        while self.advance(ended, &mut out) {}
        out
    }

    /// Decides on the next part; returns false if more text is needed.
    fn advance(&mut self, ended: bool, out: &mut String) -> bool {
        let Some((tags, searched)) = self.inside else { return self.pass_text(ended, out) };
        let fits = |end: usize| {
            end <= MAX_STRIPPED_BYTES && self.held.rest()[tags.open.len()..end].chars().all(is_of_reference)
        };
        match scan(&self.held.rest()[searched..], &[((), tags.close)], ended) {
            Scan::Found { start, len, .. } if fits(searched + start) => {
                self.held.take(searched + start + len);
            }
            Scan::Clear { until } if !ended && fits(searched + until) => {
                self.inside = Some((tags, searched + until));
                return false;
            }
            // Without an end, or around other text, the opening marker is text.
            _ => out.push_str(self.held.take(tags.open.len())),
        }
        self.inside = None;
        true
    }

    /// Passes on the text before the next opening marker; returns false if more text is needed.
    fn pass_text(&mut self, ended: bool, out: &mut String) -> bool {
        let (until, found) = match scan(self.held.rest(), &self.openings, ended) {
            Scan::Clear { until } => (until, None),
            Scan::Found { start, marker: tags, .. } => (start, Some(tags)),
        };
        out.push_str(self.held.take(until));
        let Some(tags) = found else { return false };
        if tags.close.is_empty() {
            self.held.take(tags.open.len());
        } else {
            self.inside = Some((tags, tags.open.len()));
        }
        true
    }
}

/// Returns true for the characters of numbers and lists of numbers, which refer to sources: `0:[1,2]`.
fn is_of_reference(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, ' ' | ',' | ':' | '[' | ']')
}
