//! Between the markers: the answer's own text.

use super::markers::Meaning;
use super::{Need, ReplyParser, State};
use crate::dialect::StrayEnd;
use crate::event::ProcessorEvent;
use crate::parsers::marker_scan::{Scan, scan};

/// How much text is held back while it is open whose it is.
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
                self.take_marker(len, self.markers.meanings[marker], events);
                Need::AnotherLook
            }
        }
    }

    /// A marker of this length stands at the front of the buffer.
    fn take_marker(&mut self, len: usize, meaning: Meaning, events: &mut Vec<ProcessorEvent>) {
        match meaning {
            Meaning::ChannelStart(number) => {
                self.buffer.take(len);
                self.answer.stays(events);
                self.enter_channel(number, None);
            }
            Meaning::StrayEnd(number) => {
                let at_start = self.channels[number].syntax.stray_end == StrayEnd::DroppedAtStart;
                let text = self.buffer.take(len);
                if at_start && !self.answer.at_border() {
                    self.answer.push(text, events);
                }
            }
            Meaning::Calls(syntax) => self.enter_calls(syntax, len),
            Meaning::Dropped(tags) => {
                self.buffer.take(len);
                if !tags.close.is_empty() {
                    self.state = State::Dropping(tags.close);
                }
            }
        }
    }

    pub(super) fn advance_dropping(&mut self, close: &'static str) -> Need {
        match scan(self.buffer.rest(), &[close], self.ended) {
            Scan::Clear { until } => {
                self.buffer.take(until);
                Need::MoreText
            }
            Scan::Found { start, .. } => {
                self.buffer.take(start + close.len());
                self.state = State::Answer;
                Need::AnotherLook
            }
        }
    }

    /// Looks for the first marker; when it ends the channel that the prompt may have opened, the text was the channel's.
    pub(super) fn advance_undecided(&mut self) -> Need {
        let State::Undecided { searched } = &mut self.state else { return Need::AnotherLook };
        let end = &self.channels[0].channel.end;
        let mut markers: Vec<&str> = self.markers.texts.iter().map(|text| &**text).collect();
        markers.push(end);
        let found = scan(&self.buffer.rest()[*searched..], &markers, self.ended);
        match found {
            Scan::Clear { until } if !self.ended && *searched + until <= MAX_UNDECIDED_BYTES => {
                *searched += until;
                return Need::MoreText;
            }
            Scan::Found { start, marker }
                if marker + 1 == markers.len() && *searched + start <= MAX_UNDECIDED_BYTES =>
            {
                self.enter_channel(0, None);
            }
            _ => self.state = State::Answer,
        }
        Need::AnotherLook
    }
}
