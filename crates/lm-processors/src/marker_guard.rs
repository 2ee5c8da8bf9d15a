//! Protection against text that spells a marker.
//!
//! If a marker is an added token, the same text spelled by ordinary tokens is text. A break (a noncharacter)
//! is inserted into each spelled occurrence before the parser sees it, so that neither parser states nor
//! value readers need to know tokens. Breaks are removed from all events.

use std::borrow::Cow;

use crate::event::ProcessorEvent;
use crate::parser::OutputParser;
use crate::tokens::MarkerTokens;

/// Break inside a text that spells a marker: a Unicode noncharacter.
const BREAK: char = '\u{fdd0}';
/// Escape before an occurrence of [`BREAK`] or [`ESCAPE`] in the text.
const ESCAPE: char = '\u{fdd1}';

/// Parser of a reply with known tokens.
pub(crate) struct GuardedParser<P> {
    inner: P,
    guard: Guard,
    /// True if the last reported text ended with [`ESCAPE`].
    escaped: bool,
}

impl<P: OutputParser> GuardedParser<P> {
    pub(crate) fn new(inner: P, tokens: MarkerTokens) -> Self {
        Self { inner, guard: Guard::new(tokens), escaped: false }
    }

    fn released(&mut self, events: Vec<ProcessorEvent>) -> Vec<ProcessorEvent> {
        events.into_iter().filter_map(|event| self.release(event)).collect()
    }

    /// Removes breaks from the event; `None` if nothing else is in it.
    fn release(&mut self, mut event: ProcessorEvent) -> Option<ProcessorEvent> {
        match &mut event {
            ProcessorEvent::Text(text)
            | ProcessorEvent::Channel { text, .. }
            | ProcessorEvent::ToolCallArguments { fragment: text, .. } => {
                if self.escaped || text.contains(is_control) {
                    *text = remove_breaks(text, &mut self.escaped);
                }
                (!text.is_empty()).then_some(event)
            }
            ProcessorEvent::Malformed { text, reason, .. } => {
                *text = unguarded(text).into_owned();
                *reason = unguarded(reason).into_owned();
                Some(event)
            }
            // Names, ids and values are reported without breaks.
            ProcessorEvent::ToolCallStarted { .. } | ProcessorEvent::ToolCall { .. } => Some(event),
        }
    }
}

impl<P: OutputParser> OutputParser for GuardedParser<P> {
    fn push(&mut self, delta: &str) -> Vec<ProcessorEvent> {
        let text = self.guard.text(delta);
        let events = self.inner.push(&text);
        self.released(events)
    }

    fn push_token(&mut self, token: &str) -> Vec<ProcessorEvent> {
        let text = self.guard.token(token);
        let events = self.inner.push(&text);
        self.released(events)
    }

    fn finish(&mut self) -> Vec<ProcessorEvent> {
        let events = self.inner.finish();
        self.released(events)
    }
}

/// Inserts breaks into spelled markers of streamed text.
#[derive(Debug)]
struct Guard {
    tokens: MarkerTokens,
    longest: usize,
    /// End of the text since the last marker.
    run: String,
}

impl Guard {
    fn new(tokens: MarkerTokens) -> Self {
        let longest = tokens.iter().map(str::len).max().unwrap_or(0);
        Self { tokens, longest, run: String::new() }
    }

    /// Guards text of ordinary tokens.
    fn text<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        if self.tokens.is_empty() && !text.contains(is_control) {
            return text.into();
        }
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            self.run.push(c);
            // The break is inserted before the last character, so that no text is held back.
            if self.tokens.iter().any(|token| self.run.ends_with(token)) {
                out.push(BREAK);
            }
            push_guarded(&mut out, c);
            if self.run.len() > 2 * self.longest + 64 {
                let start = self.run.ceil_char_boundary(self.run.len() - self.longest);
                self.run.drain(..start);
            }
        }
        out.into()
    }

    /// Guards the text of an added token.
    fn token<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        if !self.tokens.contains(text) {
            return self.text(text);
        }
        let completes = self.completes_a_spelled_one(text);
        self.run.clear();
        if completes { format!("{BREAK}{text}").into() } else { text.into() }
    }

    /// Returns true if the preceding text and the start of `token` together spell a marker.
    fn completes_a_spelled_one(&self, token: &str) -> bool {
        let splits = |marker: &str| {
            marker
                .char_indices()
                .skip(1)
                .any(|(at, _)| self.run.ends_with(&marker[..at]) && token.starts_with(&marker[at..]))
        };
        self.tokens.iter().any(splits)
    }
}

fn is_control(c: char) -> bool {
    c == BREAK || c == ESCAPE
}

fn push_guarded(out: &mut String, c: char) {
    if is_control(c) {
        out.push(ESCAPE);
    }
    out.push(c);
}

/// Guards a plain text.
pub(crate) fn guarded(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return text.into();
    }
    let mut out = String::new();
    text.chars().for_each(|c| push_guarded(&mut out, c));
    out.into()
}

/// Removes the guards of a text: the text as the model wrote it.
pub(crate) fn unguarded(text: &str) -> Cow<'_, str> {
    if text.contains(is_control) { remove_breaks(text, &mut false).into() } else { text.into() }
}

/// Removes the guards of a partial text; `escaped` is true if [`ESCAPE`] precedes it, and is updated for its
/// end.
fn remove_breaks(text: &str, escaped: &mut bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if std::mem::take(escaped) || !is_control(c) {
            out.push(c);
        } else {
            *escaped = c == ESCAPE;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        Guard::new(MarkerTokens::in_markers(["<a>", "|b|"], |text| {
            ["<a>", "|b|"].iter().find(|token| text.starts_with(**token)).map(|token| token.len())
        }))
    }

    #[test]
    fn only_tokens_are_markers() {
        let cases: &[(&[(&str, bool)], &str)] = &[
            (&[("x<a>y", false)], "x<a\u{fdd0}>y"),
            (&[("x<", false), ("a", false), (">y", false)], "x<a\u{fdd0}>y"),
            (&[("<a", false), ("<a>", true), (">", false)], "<a<a>>"),
            (&[("<c><a>", true)], "<c><a\u{fdd0}>"),
            (&[("<", false), ("a>", true)], "<a\u{fdd0}>"),
            (&[("\u{fdd0}\u{fdd1}", false)], "\u{fdd1}\u{fdd0}\u{fdd1}\u{fdd1}"),
        ];
        for (pieces, expected) in cases {
            let mut guard = guard();
            let out: String = pieces
                .iter()
                .map(|(text, token)| if *token { guard.token(text) } else { guard.text(text) })
                .collect();
            assert_eq!(out, *expected, "{pieces:?}");
            let written: String = pieces.iter().map(|(text, _)| *text).collect();
            assert_eq!(unguarded(&out), written);
        }
    }

    /// A text and a token that together spell another token are not a marker.
    #[test]
    fn marker_is_a_single_token() {
        const TOKENS: [&str; 3] = ["<a>", ">>", "a>"];
        let added = |text: &str| TOKENS.iter().find(|token| text.starts_with(**token)).map(|t| t.len());
        for (text, token) in [("<a", ">>"), ("<", "a>")] {
            let mut guard = Guard::new(MarkerTokens::in_markers(TOKENS, added));
            let guarded = [guard.text(text), guard.token(token)].concat();
            assert_eq!(guarded, format!("{text}\u{fdd0}{token}"));
        }
    }

    #[test]
    fn reported_text_can_be_cut_anywhere() {
        let text = "a\u{fdd0}\u{fdd1}b<a>";
        let broken = guard().text(text).into_owned();
        for (cut, _) in broken.char_indices() {
            let mut escaped = false;
            assert_eq!(
                remove_breaks(&broken[..cut], &mut escaped) + &remove_breaks(&broken[cut..], &mut escaped),
                text
            );
        }
    }
}
