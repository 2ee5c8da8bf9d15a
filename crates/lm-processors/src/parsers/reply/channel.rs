//! Parsing of a channel.

use super::markers::{ChannelEnd, inner_opener, is_bare, may_start_with, opener};
use super::{ReplyParser, State, Step};
use crate::channel::ReplyChannel;
use crate::dialect::{BeforeCalls, CallSyntax, CallsInside, Place, Trim, Undeclared};
use crate::event::{CallFault, ProcessorEvent};
use crate::parser::ReasoningText;
use crate::parsers::body::reader;
use crate::parsers::body_reader::Progress;
use crate::parsers::call_sink::{CallSink, CallState};
use crate::parsers::channel_flow::ChannelFlow;
use crate::parsers::fault::Fault;
use crate::parsers::marker_scan::{Scan, scan};

/// Maximum whitespace between a start marker and its repetition, and maximum text examined to select a call
/// syntax.
const MAX_LAYOUT_BYTES: usize = 256;

/// The channel being read.
#[derive(Debug)]
pub(super) struct InChannel {
    number: usize,
    /// True if the prompt opened it.
    opened: bool,
    /// True if only whitespace was read, so that the start marker may be repeated.
    at_start: bool,
    /// Set if the buffer starts with a marker that ends the channel only if the reply ends without the
    /// channel's end marker. The value is the number of bytes from there on that were searched for that end
    /// marker.
    possible_end: Option<usize>,
    flow: ChannelFlow,
}

impl ReplyParser {
    /// Enters a channel; `opened` is its start in the prompt, if the prompt opened it.
    pub(super) fn enter_channel(&mut self, number: usize, opened: Option<&str>) {
        let channel = &self.channels[number];
        let inline =
            self.options.reasoning == ReasoningText::Inline || channel.syntax.place == Place::InAnswer;
        let start = opened.unwrap_or(&channel.channel.start);
        let flow = if inline { ChannelFlow::inline(start) } else { ChannelFlow::new(channel) };
        // After text that the prompt wrote, the model is not at the channel's start.
        let written = opened.and_then(|opened| opened.strip_prefix(&*channel.channel.start));
        let at_start = match written {
            Some(written) => {
                let written = written.trim();
                written.is_empty() || written == channel.syntax.label.trim()
            }
            None => opened.is_some() || !inline,
        };
        let opened = opened.is_some();
        self.state = State::Channel(InChannel { number, opened, at_start, possible_end: None, flow });
    }

    pub(super) fn advance_channel(&mut self, events: &mut Vec<ProcessorEvent>) -> Step {
        if let Some(step) = self.start_channel(events) {
            return step;
        }
        let State::Channel(inside) = &self.state else { return Step::Continue };
        match inside.possible_end {
            None => self.search_end(events),
            Some(searched) => self.search_end_after_marker(searched, events),
        }
    }

    /// Skips a repeated start marker; returns the next step if that is undecided, or the model skipped the
    /// channel.
    fn start_channel(&mut self, events: &mut Vec<ProcessorEvent>) -> Option<Step> {
        let State::Channel(inside) = &mut self.state else { return Some(Step::Continue) };
        if !inside.at_start {
            return None;
        }
        let ReplyChannel { channel, syntax } = &self.channels[inside.number];
        let others = match syntax.calls_inside {
            CallsInside::AtStart | CallsInside::End if inside.opened => &self.markers.after_channel[..],
            _ => &[],
        };
        let (text, start) = (self.buffer.rest().trim_start(), &*channel.start);
        let layout = self.buffer.rest().len() - text.len();
        let may_come = |marker: &str| marker.len() > text.len() && marker.starts_with(text);
        let open = others.iter().any(|(_, marker)| may_come(marker)) || may_come(start);
        if open && !self.ended && layout <= MAX_LAYOUT_BYTES {
            return Some(Step::NeedText);
        }
        inside.at_start = false;
        if layout > MAX_LAYOUT_BYTES {
            return None;
        }
        if text.starts_with(start) {
            let start = start.len();
            inside.flow.push(self.buffer.take(layout), &mut self.answer, events);
            self.buffer.take(start);
        } else if others.iter().any(|(_, marker)| text.starts_with(marker)) {
            self.buffer.take(layout);
            return Some(self.leave_channel(Trim::Nothing));
        }
        None
    }

    /// Emits text up to the channel's end, or to a marker that may end it.
    fn search_end(&mut self, events: &mut Vec<ProcessorEvent>) -> Step {
        let State::Channel(inside) = &mut self.state else { return Step::Continue };
        let ReplyChannel { channel, syntax } = &self.channels[inside.number];
        let mut ends = vec![(ChannelEnd::Own, &*channel.end)];
        if syntax.calls_inside == CallsInside::End || self.calls_in_channels {
            ends.extend(&self.markers.after_channel);
        }
        match scan(self.buffer.rest(), &ends, self.ended) {
            Scan::Clear { until } => {
                inside.flow.push(self.buffer.take(until), &mut self.answer, events);
                if self.ended {
                    inside.flow.finish(&mut self.answer, events);
                }
                Step::NeedText
            }
            Scan::Found { marker, start, len } => {
                inside.flow.push(self.buffer.take(start), &mut self.answer, events);
                match marker {
                    ChannelEnd::Own => self.end_channel(len, events),
                    ChannelEnd::Next if syntax.calls_inside == CallsInside::End => {
                        self.interrupt_channel(events)
                    }
                    ChannelEnd::Next => {
                        inside.possible_end = Some(len);
                        Step::Continue
                    }
                }
            }
        }
    }

    /// Handles a call's marker at the start of the buffer: it is text of the channel if the channel has an
    /// end marker.
    fn search_end_after_marker(&mut self, searched: usize, events: &mut Vec<ProcessorEvent>) -> Step {
        let State::Channel(inside) = &mut self.state else { return Step::Continue };
        let end = &*self.channels[inside.number].channel.end;
        match scan(&self.buffer.rest()[searched..], &[((), end)], self.ended) {
            Scan::Found { start, len, .. } => {
                inside.flow.push(self.buffer.take(searched + start), &mut self.answer, events);
                self.end_channel(len, events)
            }
            Scan::Clear { until } if !self.ended => {
                inside.possible_end = Some(searched + until);
                Step::NeedText
            }
            Scan::Clear { .. } => self.end_unterminated(events),
        }
    }

    /// Handles the end of the reply inside the channel, with a call's marker at the start of the buffer. The
    /// first such marker that starts a call ends the channel.
    fn end_unterminated(&mut self, events: &mut Vec<ProcessorEvent>) -> Step {
        while let Err(read) = self.call_at_front() {
            let State::Channel(inside) = &mut self.state else { return Step::Continue };
            inside.flow.push(self.buffer.take(read), &mut self.answer, events);
            let until = match scan(self.buffer.rest(), &self.markers.after_channel, true) {
                Scan::Found { start, .. } => start,
                Scan::Clear { until } => until,
            };
            inside.flow.push(self.buffer.take(until), &mut self.answer, events);
            if self.buffer.rest().is_empty() {
                inside.flow.finish(&mut self.answer, events);
                return Step::NeedText;
            }
        }
        self.interrupt_channel(events)
    }

    /// Checks that the buffer, which starts with a marker, starts with a complete call of a declared tool.
    ///
    /// # Errors
    /// The number of bytes read, if it is not a call.
    fn call_at_front(&self) -> Result<(), usize> {
        let text = self.buffer.rest();
        let begins = |marker: &&str| !marker.is_empty() && text.starts_with(*marker);
        let markers = self.markers.after_channel.iter().map(|(_, marker)| *marker).filter(begins);
        let marker = markers.max_by_key(|marker| marker.len()).unwrap_or_default();
        let start_of = |syntax: &&CallSyntax| {
            !is_bare(syntax) && (opener(syntax) == marker || inner_opener(syntax) == marker)
        };
        let mut syntaxes = self.dialect.calls.iter().filter(start_of).peekable();
        let Some(first) = syntaxes.peek().copied() else { return Ok(()) };
        let mut read = marker.len();
        if !first.section.open.is_empty() && marker == first.section.open {
            let inside = text[read..].trim_start();
            read = text.len() - inside.len();
            if !inside.starts_with(first.call.open) {
                return Err(read);
            }
            read += first.call.open.len();
        }
        let window = &text[read..text.floor_char_boundary(read + MAX_LAYOUT_BYTES)];
        let chosen = syntaxes.find(|syntax| may_start_with(&syntax.body, window) == Some(true));
        self.read_call(chosen.unwrap_or(first), &text[read..]).map_err(|more| (read + more).min(text.len()))
    }

    fn read_call(&self, syntax: &'static CallSyntax, text: &str) -> Result<(), usize> {
        let mut reader = reader(syntax, &self.tools, self.tolerance);
        let mut state = CallState::new(self.tools.clone(), Undeclared::Malformed);
        let mut sink = CallSink { state: &mut state, events: &mut Vec::new() };
        let fault = match reader.read(text, &mut sink) {
            Ok(Progress::Open) => reader.finish(text, &mut sink).err(),
            Ok(_) => None,
            Err(fault) => Some(fault),
        };
        match fault {
            None => Ok(()),
            Some(Fault { kind: CallFault::Unfinished, .. }) => Err(text.len()),
            Some(_) => Err(text.floor_char_boundary(reader.position())),
        }
    }

    /// Consumes the channel's end marker, of this length, at the start of the buffer.
    fn end_channel(&mut self, len: usize, events: &mut Vec<ProcessorEvent>) -> Step {
        let State::Channel(inside) = &mut self.state else { return Step::Continue };
        inside.flow.end(self.buffer.take(len), &mut self.answer, events);
        let trim = self.channels[inside.number].syntax.trim_after;
        self.after_channel = Some(inside.number);
        self.leave_channel(trim)
    }

    /// Ends the channel before the text at the start of the buffer, which is then read as part of the answer.
    fn interrupt_channel(&mut self, events: &mut Vec<ProcessorEvent>) -> Step {
        let State::Channel(inside) = &mut self.state else { return Step::Continue };
        inside.flow.interrupt(
            match self.dialect.answer.before_calls {
                BeforeCalls::Layout(layout) => layout,
                BeforeCalls::OwnLine => "\n",
                BeforeCalls::Text | BeforeCalls::Dropped => "",
            },
            events,
        );
        self.leave_channel(Trim::Nothing)
    }

    fn leave_channel(&mut self, trim: Trim) -> Step {
        let inline =
            matches!(&self.state, State::Channel(InChannel { flow: ChannelFlow::Inline { .. }, .. }));
        if !inline {
            self.answer.boundary(trim);
        }
        self.state = self.start_state(trim, inline);
        Step::Continue
    }
}
