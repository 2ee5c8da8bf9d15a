//! Parsing of the answer, between markers.

use super::markers::{Meaning, inner_marker, is_bare, is_unmistakable};
use super::{Need, ReplyParser, State};
use crate::dialect::{CallSyntax, StrayEnd};
use crate::event::ProcessorEvent;
use crate::parsers::marker_scan::{Scan, scan};

/// Maximum amount of text held back while it is undecided.
const MAX_UNDECIDED_BYTES: usize = 1 << 16;

impl ReplyParser {
    pub(super) fn advance_answer(&mut self, events: &mut Vec<ProcessorEvent>) -> Need {
        match scan(self.buffer.rest(), &self.markers.texts, self.ended) {
            Scan::Clear { until } => {
                self.answer.push(self.buffer.take(until), events);
                Need::MoreText
            }
            Scan::Found { start, marker } => {
                self.answer.push(self.buffer.take(start), events);
                let len = self.markers.texts[marker].len();
                if self.is_text_here(self.markers.meanings[marker]) {
                    self.answer.push(self.buffer.take(len), events);
                    return Need::AnotherLook;
                }
                self.take_marker(len, self.markers.meanings[marker], events);
                Need::AnotherLook
            }
        }
    }

    /// Returns true if this marker is text here: under a grammar, calls without a marker start at the start of the
    /// reply and fill it.
    fn is_text_here(&self, meaning: Meaning) -> bool {
        let bare = matches!(meaning, Meaning::Calls(syntax) if is_bare(&self.syntaxes[syntax]));
        bare && self.options.form.is_some() && !self.answer.at_border()
    }

    /// Consumes a marker of this length at the start of the buffer.
    fn take_marker(&mut self, len: usize, meaning: Meaning, events: &mut Vec<ProcessorEvent>) {
        match meaning {
            Meaning::ChannelStart(number) => {
                self.buffer.take(len);
                self.answer.stays(events);
                self.enter_channel(number, None);
            }
            Meaning::StrayEnd(number) => {
                let repeated = self.after_channel == Some(number);
                let dropped = match self.channels[number].syntax.stray_end {
                    StrayEnd::Dropped => true,
                    StrayEnd::DroppedAtStart => self.answer.at_border(),
                    StrayEnd::Text | StrayEnd::EndsChannel => repeated && self.answer.at_border(),
                };
                let text = self.buffer.take(len);
                if !dropped {
                    self.answer.push(text, events);
                }
            }
            Meaning::InnerCall(syntax) => {
                let marker = inner_marker(&self.syntaxes[syntax]);
                if self.open_section == Some(syntax) || is_unmistakable(marker) {
                    self.enter_inner_call(syntax, len, events);
                } else {
                    self.answer.push(self.buffer.take(len), events);
                }
            }
            Meaning::CallsEnd => {
                let text = self.buffer.take(len);
                let owed = |syntax: Option<usize>, close: fn(&CallSyntax) -> &'static str| {
                    syntax.is_some_and(|syntax| close(&self.syntaxes[syntax]) == text)
                };
                let of_call = owed(self.unclosed, |syntax| syntax.call.close);
                let of_section = owed(self.open_section, |syntax| syntax.section.close);
                if of_call {
                    self.unclosed = None;
                } else if of_section {
                    self.open_section = None;
                } else if !self.answer.is_right_after_call() {
                    self.answer.push(text, events);
                }
            }
            Meaning::Calls(syntax) => self.enter_calls(syntax, len),
            Meaning::Dropped => {
                self.buffer.take(len);
            }
        }
    }

    /// Searches for the first marker; if it ends a channel that the prompt may have opened, the text belongs to the
    /// channel.
    pub(super) fn advance_undecided(&mut self) -> Need {
        let State::Undecided { searched } = &mut self.state else { return Need::AnotherLook };
        let end = &self.channels[0].channel.end;
        let texts = &self.markers.texts;
        let found = scan(&self.buffer.rest()[*searched..], texts, self.ended);
        match found {
            Scan::Clear { until } if !self.ended && *searched + until <= MAX_UNDECIDED_BYTES => {
                *searched += until;
                return Need::MoreText;
            }
            Scan::Found { start, marker }
                if texts[marker] == *end && *searched + start <= MAX_UNDECIDED_BYTES =>
            {
                self.enter_channel(0, None);
            }
            _ => self.state = State::Answer,
        }
        Need::AnotherLook
    }
}
