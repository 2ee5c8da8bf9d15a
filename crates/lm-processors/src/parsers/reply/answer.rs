//! Parsing of the answer, between markers.

use super::markers::{MarkerRole, inner_opener, is_bare, is_distinctive};
use super::{ReplyParser, State, Step};
use crate::dialect::{CallSyntax, UnmatchedEnd};
use crate::event::ProcessorEvent;
use crate::parsers::marker_scan::{Scan, scan};

/// Maximum amount of text held back while it is undecided.
const MAX_UNDECIDED_BYTES: usize = 1 << 16;

impl ReplyParser {
    pub(super) fn advance_answer(&mut self, events: &mut Vec<ProcessorEvent>) -> Step {
        match scan(self.buffer.rest(), &self.markers.in_answer, self.ended) {
            Scan::Clear { until } => {
                self.answer.push(self.buffer.take(until), events);
                Step::NeedText
            }
            Scan::Found { marker: role, start, len } => {
                self.answer.push(self.buffer.take(start), events);
                if self.is_text_at_this_position(role) {
                    self.answer.push(self.buffer.take(len), events);
                } else {
                    self.take_marker(len, role, events);
                }
                Step::Continue
            }
        }
    }

    /// Returns true if this marker is text here: under a grammar, calls without a marker start at the start
    /// of the reply and fill it.
    fn is_text_at_this_position(&self, role: MarkerRole) -> bool {
        let bare = matches!(role, MarkerRole::Calls(syntax) if is_bare(&self.syntaxes[syntax]));
        bare && self.options.form.is_some() && !self.answer.at_boundary()
    }

    /// Consumes a marker of this length at the start of the buffer.
    fn take_marker(&mut self, len: usize, role: MarkerRole, events: &mut Vec<ProcessorEvent>) {
        match role {
            MarkerRole::ChannelStart(number) => {
                self.buffer.take(len);
                self.answer.keep_held(events);
                self.enter_channel(number, None);
            }
            MarkerRole::UnmatchedEnd(number) => {
                let dropped = self.drops_unmatched_end(number);
                let text = self.buffer.take(len);
                if !dropped {
                    self.answer.push(text, events);
                }
            }
            MarkerRole::InnerCall(syntax) => {
                let marker = inner_opener(&self.syntaxes[syntax]);
                if self.open_section == Some(syntax) || is_distinctive(marker) {
                    self.enter_inner_call(syntax, len, events);
                } else {
                    self.answer.push(self.buffer.take(len), events);
                }
            }
            MarkerRole::CallsEnd => self.take_calls_end(len, events),
            MarkerRole::Calls(syntax) => self.enter_calls(syntax, len),
            MarkerRole::Dropped => {
                self.buffer.take(len);
            }
        }
    }

    /// Returns true if the end marker of this channel, which is not open, is dropped.
    fn drops_unmatched_end(&self, channel: usize) -> bool {
        let repeated = self.after_channel == Some(channel);
        match self.channels[channel].syntax.unmatched_end {
            UnmatchedEnd::Dropped => true,
            UnmatchedEnd::DroppedAtStart => self.answer.at_boundary(),
            UnmatchedEnd::Text | UnmatchedEnd::EndsChannel => repeated && self.answer.at_boundary(),
        }
    }

    /// Consumes the closing marker of a call or section: the one that is still missing, or text.
    fn take_calls_end(&mut self, len: usize, events: &mut Vec<ProcessorEvent>) {
        let text = self.buffer.take(len);
        let expected = |syntax: Option<usize>, close: fn(&CallSyntax) -> &'static str| {
            syntax.is_some_and(|syntax| close(&self.syntaxes[syntax]) == text)
        };
        let of_call = expected(self.unclosed, |syntax| syntax.call.close);
        let of_section = expected(self.open_section, |syntax| syntax.section.close);
        if of_call {
            self.unclosed = None;
        } else if of_section {
            self.open_section = None;
        } else if !self.answer.is_right_after_call() {
            self.answer.push(text, events);
        }
    }

    /// Searches for the first marker; if it ends a channel that the prompt may have opened, the text belongs
    /// to the channel.
    pub(super) fn advance_undecided(&mut self) -> Step {
        let State::Undecided { searched } = &mut self.state else { return Step::Continue };
        let end = &self.channels[0].channel.end;
        let rest = &self.buffer.rest()[*searched..];
        match scan(rest, &self.markers.in_answer, self.ended) {
            Scan::Clear { until } if !self.ended && *searched + until <= MAX_UNDECIDED_BYTES => {
                *searched += until;
                return Step::NeedText;
            }
            Scan::Found { start, len, .. }
                if rest[start..start + len] == **end && *searched + start <= MAX_UNDECIDED_BYTES =>
            {
                self.enter_channel(0, None);
            }
            _ => self.state = State::Answer,
        }
        Step::Continue
    }
}
