//! Inside a channel.

use super::{Need, ReplyParser, State};
use crate::channel::ReplyChannel;
use crate::dialect::{CallsInside, Place, Trim};
use crate::event::ProcessorEvent;
use crate::parser::ReasoningText;
use crate::parsers::channel_flow::ChannelFlow;
use crate::parsers::marker_scan::{Scan, scan};

/// How much whitespace may stand between the prompt's start marker and one that the model repeats.
const MAX_LAYOUT_BYTES: usize = 256;

impl ReplyParser {
    /// Enters a channel: `opened` is what the prompt opened it with, if it did.
    pub(super) fn enter_channel(&mut self, number: usize, opened: Option<&str>) {
        let channel = &self.channels[number];
        let inline =
            self.options.reasoning == ReasoningText::Inline || channel.syntax.place == Place::InAnswer;
        let start = opened.unwrap_or(&channel.channel.start);
        let flow = if inline { ChannelFlow::inline(start) } else { ChannelFlow::new(channel) };
        self.state = State::Channel { number, at_start: opened.is_some(), flow };
    }

    pub(super) fn advance_channel(&mut self, events: &mut Vec<ProcessorEvent>) -> Need {
        let State::Channel { number, at_start, flow } = &mut self.state else { return Need::AnotherLook };
        let ReplyChannel { channel, syntax } = &self.channels[*number];
        let others = match syntax.calls_inside {
            CallsInside::Text => &[],
            CallsInside::AtStart | CallsInside::End => &self.markers.after_channel[..],
        };
        if *at_start {
            let (text, start) = (self.buffer.rest().trim_start(), &*channel.start);
            let layout = self.buffer.rest().len() - text.len();
            let may_come = |marker: &str| marker.len() > text.len() && marker.starts_with(text);
            let open = others.iter().any(|marker| may_come(marker)) || may_come(start);
            if open && !self.ended && layout <= MAX_LAYOUT_BYTES {
                return Need::MoreText;
            }
            *at_start = false;
            if layout <= MAX_LAYOUT_BYTES {
                if text.starts_with(start) {
                    let start = start.len();
                    flow.push(self.buffer.take(layout), &mut self.answer, events);
                    self.buffer.take(start);
                } else if others.iter().any(|marker| text.starts_with(marker)) {
                    self.buffer.take(layout);
                    return self.leave_channel(Trim::Nothing);
                }
            }
        }
        let mut ends = vec![&*channel.end];
        if syntax.calls_inside == CallsInside::End {
            ends.extend(others);
        }
        match scan(self.buffer.rest(), &ends, self.ended) {
            Scan::Clear { until } => {
                flow.push(self.buffer.take(until), &mut self.answer, events);
                if self.ended {
                    flow.finish(&mut self.answer, events);
                }
                Need::MoreText
            }
            Scan::Found { start, marker } => {
                flow.push(self.buffer.take(start), &mut self.answer, events);
                let end = self.buffer.take(if marker == 0 { ends[0].len() } else { 0 });
                flow.end(end, &mut self.answer, events);
                let trim = syntax.trim_after;
                self.leave_channel(trim)
            }
        }
    }

    fn leave_channel(&mut self, trim: Trim) -> Need {
        if let State::Channel { flow: ChannelFlow::Split(_), .. } = &self.state {
            self.answer.border(trim);
        }
        self.state = State::Answer;
        Need::AnotherLook
    }
}
