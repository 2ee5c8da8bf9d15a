//! Parsing of calls, inside their markers.

use super::markers::{bare_start, first_marker, is_bare, may_begin};
use super::{Need, ReplyParser, State};
use crate::dialect::{CallBody, CallSyntax, Reported, Tags, Trim};
use crate::event::{CallFault, ProcessorEvent};
use crate::parser::{OnMalformed, Recovery};
use crate::parsers::body::{BodyReader, CallSink, Fault, Progress, reader};
use crate::parsers::marker_scan::{Scan, scan};

/// Maximum amount of layout examined to decide what follows.
const MAX_LAYOUT_BYTES: usize = 256;

/// The call block being read.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) syntax: usize,
    reader: Box<dyn BodyReader>,
    /// True while nothing of the body is read: its opening marker may be repeated.
    fresh: bool,
    /// End of the body, once complete.
    ended: Option<usize>,
    /// Held events of a call without a marker, which may still be text.
    held: Vec<ProcessorEvent>,
}

/// An invalid call, whose end is still searched for.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) syntax: usize,
    fault: Fault,
    /// Index of the call, if its start was reported.
    index: Option<usize>,
    /// Number of bytes read as a call.
    read: usize,
    /// Number of bytes searched for its end. Bytes read as part of the call are not searched: a marker inside a string
    /// ends nothing.
    searched: usize,
}

impl ReplyParser {
    /// Enters calls at their marker of this length at the start of the buffer; `syntax` is the first one with that marker.
    pub(super) fn enter_calls(&mut self, syntax: usize, len: usize) {
        if !is_bare(&self.syntaxes[syntax]) {
            self.pending = self.buffer.take(len).to_owned();
        }
        self.state = State::Choosing(syntax);
    }

    /// Enters the calls whose marker the prompt ends with, if any.
    pub(super) fn enter_open_calls(&mut self, tail: &str) {
        let open = |syntax: &CallSyntax| !is_bare(syntax) && tail.ends_with(first_marker(syntax));
        if let Some(syntax) = self.syntaxes.iter().position(open) {
            self.state = State::Choosing(syntax);
        }
    }

    pub(super) fn advance_choosing(&mut self, first: usize, events: &mut Vec<ProcessorEvent>) -> Need {
        if !is_bare(&self.syntaxes[first])
            && let Some(need) = self.skip_repeated(first_marker(&self.syntaxes[first]))
        {
            return need;
        }
        let text = self.buffer.rest();
        let Some(chosen) = self.choose(first, text) else { return Need::MoreText };
        self.answer.call_begins(text, events);
        if self.syntaxes[chosen].section.open.is_empty() {
            self.enter_body(chosen);
        } else {
            self.state = State::Section(chosen);
        }
        Need::AnotherLook
    }

    /// Skips a repetition of an opening marker; returns the next step if it is, or may be, repeated.
    fn skip_repeated(&mut self, marker: &str) -> Option<Need> {
        let rest = self.buffer.rest();
        let text = rest.trim_start();
        let layout = rest.len() - text.len();
        if layout > MAX_LAYOUT_BYTES {
            return None;
        }
        if text.starts_with(marker) {
            self.pending.push_str(self.buffer.take(layout + marker.len()));
            return Some(Need::AnotherLook);
        }
        (!self.ended && marker.starts_with(text)).then_some(Need::MoreText)
    }

    /// Enters a call at its marker outside of the section that it requires.
    pub(super) fn enter_inner_call(&mut self, syntax: usize, len: usize, events: &mut Vec<ProcessorEvent>) {
        self.pending = self.buffer.take(len).to_owned();
        self.answer.call_begins("", events);
        self.enter_body(syntax);
    }

    /// Chooses the syntax that `text` continues, among those with the same marker; `None` if more text is needed to decide.
    fn choose(&self, first: usize, text: &str) -> Option<usize> {
        let marker = first_marker(&self.syntaxes[first]);
        let beginning = &text[..text.floor_char_boundary(MAX_LAYOUT_BYTES)];
        let all_has_come = self.ended || beginning.len() < text.len();
        let rivals =
            self.syntaxes.iter().enumerate().skip(first).filter(|(_, syntax)| first_marker(syntax) == marker);
        if rivals.clone().nth(1).is_none() {
            return (self.ended || !text.is_empty()).then_some(first);
        }
        for (number, syntax) in rivals {
            match may_begin(&syntax.body, beginning) {
                Some(true) => return Some(number),
                None if !all_has_come => return None,
                _ => {}
            }
        }
        Some(first)
    }

    fn enter_body(&mut self, syntax: usize) {
        let reader = reader(&self.syntaxes[syntax], &self.options);
        self.calls.block_begins();
        self.unclosed = None;
        let fresh = !self.syntaxes[syntax].section.open.is_empty();
        self.state = State::Body(Box::new(Block { syntax, reader, fresh, ended: None, held: Vec::new() }));
    }

    pub(super) fn advance_section(&mut self, number: usize, events: &mut Vec<ProcessorEvent>) -> Need {
        let CallSyntax { section, separator, call, reported, .. } = self.syntaxes[number];
        self.take_layout();
        let separator = separator.trim();
        if !separator.is_empty() && self.buffer.rest().starts_with(separator) {
            self.pending.push_str(self.buffer.take(separator.len()));
            self.take_layout();
        }
        let rest = self.buffer.rest();
        let may_come = |marker: &str| marker.len() > rest.len() && marker.starts_with(rest);
        if !section.close.is_empty() && rest.starts_with(section.close) {
            self.pending.push_str(self.buffer.take(section.close.len()));
            let close = std::mem::take(&mut self.pending);
            if std::mem::take(&mut self.section_is_text) {
                self.answer.push(&close, events);
            } else {
                events.append(&mut self.held);
                self.answer.call_ended();
            }
            self.open_section = None;
            self.state = State::Answer;
        } else if !rest.is_empty() && rest.starts_with(call.open) {
            self.pending.push_str(self.buffer.take(call.open.len()));
            self.enter_body(number);
        } else if !section.open.is_empty() && rest.starts_with(section.open) {
            self.pending.push_str(self.buffer.take(section.open.len()));
        } else if !self.ended
            && (rest.is_empty() || [section.open, section.close, call.open].into_iter().any(may_come))
        {
            return Need::MoreText;
        } else if rest.is_empty() && self.pending.trim().is_empty() {
            // Only the closing marker of the section is missing, and all its text is reported.
            self.pending.clear();
            self.state = State::Answer;
        } else if self.pending.trim().is_empty() && reported == Reported::AtOnce {
            // Text between two calls: the section continues after it.
            let layout = std::mem::take(&mut self.pending);
            self.answer.push(&layout, events);
            self.open_section = Some(number);
            self.state = State::Answer;
        } else {
            let reason = "text stands where a call must";
            let fault = if rest.is_empty() { Fault::unfinished() } else { Fault::malformed(reason) };
            self.state = State::Broken(Broken { syntax: number, fault, index: None, read: 0, searched: 0 });
        }
        Need::AnotherLook
    }

    /// Consumes the separator of two calls without a section, if another call follows.
    pub(super) fn advance_between(&mut self, separator: &'static str) -> Need {
        let rest = self.buffer.rest();
        let text = rest.trim_start();
        let next = text.strip_prefix(separator).map(str::trim_start);
        let layout = rest.len() - next.unwrap_or(text).len();
        let open = match next {
            None => separator.starts_with(text),
            Some(next) => self.syntaxes.iter().any(|syntax| {
                let marker = first_marker(syntax);
                marker.len() > next.len() && marker.starts_with(next)
            }),
        };
        if open && !self.ended && layout <= MAX_LAYOUT_BYTES {
            return Need::MoreText;
        }
        let follows = |syntax: &CallSyntax| next.is_some_and(|next| next.starts_with(first_marker(syntax)));
        if layout <= MAX_LAYOUT_BYTES && self.syntaxes.iter().any(follows) {
            self.buffer.take(layout);
        }
        self.state = State::Answer;
        Need::AnotherLook
    }

    fn take_layout(&mut self) {
        let rest = self.buffer.rest();
        let layout = rest.len() - rest.trim_start().len();
        self.pending.push_str(self.buffer.take(layout));
    }

    pub(super) fn advance_body(&mut self, events: &mut Vec<ProcessorEvent>) -> Need {
        let State::Body(block) = &mut self.state else { return Need::AnotherLook };
        if block.ended.is_some() {
            return self.close_call(events);
        }
        if std::mem::take(&mut block.fresh) {
            let open = self.syntaxes[block.syntax].call.open;
            let repeated = self.skip_repeated(open);
            if let (Some(need), State::Body(block)) = (repeated, &mut self.state) {
                block.fresh = true;
                return need;
            }
            return Need::AnotherLook;
        }
        let bare = is_bare(&self.syntaxes[block.syntax]);
        let text = self.buffer.rest();
        let sink = match self.syntaxes[block.syntax].reported {
            Reported::WithSection => &mut self.held,
            Reported::AtOnce if bare => &mut block.held,
            Reported::AtOnce => &mut *events,
        };
        let mut sink = CallSink { state: &mut self.calls, events: sink };
        let result = match block.reader.follow(text, &mut sink) {
            Ok(Progress::Open) if self.ended => block.reader.finish(text, &mut sink).map(Progress::Complete),
            result => result,
        };
        // JSON without a marker is a call only as a whole.
        let waits = bare
            && self.options.form.is_none()
            && matches!(self.syntaxes[block.syntax].body, CallBody::Json(_))
            && result.as_ref().map_or_else(|fault| fault.is_text, |progress| *progress == Progress::Open);
        if !waits && (self.calls.certain() || matches!(result, Ok(Progress::Complete(_)))) {
            events.append(&mut block.held);
        }
        match result {
            Ok(Progress::Open) => return Need::MoreText,
            Ok(Progress::Complete(end)) => block.ended = Some(end),
            Ok(Progress::Answer(end)) => {
                self.buffer.take(end);
                self.pending.clear();
                self.answer.border(Trim::Nothing);
                self.state = State::Answer;
            }
            Err(fault) => self.break_call(fault, events),
        }
        Need::AnotherLook
    }

    /// Reads the closing marker after a complete body. A missing one is tolerated: other text is not part of the call.
    fn close_call(&mut self, events: &mut Vec<ProcessorEvent>) -> Need {
        let State::Body(block) = &mut self.state else { return Need::AnotherLook };
        let number = block.syntax;
        let CallSyntax { call: Tags { close, .. }, section, separator, reported, body, .. } =
            self.syntaxes[number];
        let end = block.ended.unwrap_or_default();
        let after = &self.buffer.rest()[end..];
        let rest = after.trim_start();
        let layout = after.len() - rest.len();
        let another = if close.is_empty() { "" } else { bare_start(&body) };
        let may_come = |marker: &str| !rest.starts_with(marker) && marker.starts_with(rest);
        // Closing brackets that nothing opened are noise before the closing marker.
        let recovers =
            self.options.recovery == Recovery::On && matches!(body, CallBody::Json(_) | CallBody::Named(_));
        let is_noise = |c: char| c.is_whitespace() || (recovers && matches!(c, '}' | ']'));
        let behind = after.trim_start_matches(is_noise);
        let noise = after.len() - behind.len();
        let may_close = noise > layout && noise <= MAX_LAYOUT_BYTES && close.starts_with(behind);
        // Objects may be separated by commas as well.
        let next = rest.strip_prefix(',').filter(|_| recovers).map_or(rest, str::trim_start);
        let taken = match () {
            () if close.is_empty() => end,
            () if rest.starts_with(close) => end + layout + close.len(),
            () if behind.starts_with(close) => end + noise + close.len(),
            () if !self.ended && may_close => return Need::MoreText,
            () if self.ended && close.starts_with(rest) => end + after.len(),
            () if !self.ended
                && layout <= MAX_LAYOUT_BYTES
                && (may_come(close) || may_come(another) || next.is_empty()) =>
            {
                return Need::MoreText;
            }
            () if reported == Reported::WithSection => {
                self.break_call(Fault::malformed("text follows the call"), events);
                return Need::AnotherLook;
            }
            () if !another.is_empty() && next.starts_with(another) => {
                // Another call between the same markers.
                let separator = after.len() - next.len();
                self.buffer.take(end + separator);
                self.call_ended();
                self.enter_body(number);
                return Need::AnotherLook;
            }
            () => {
                self.unclosed = Some(number);
                end
            }
        };
        self.state = match () {
            () if !section.open.is_empty() => State::Section(number),
            () if !separator.trim().is_empty() => State::Between(separator.trim()),
            () => State::Answer,
        };
        let text = self.buffer.take(taken);
        if reported == Reported::WithSection {
            self.pending.push_str(text);
        } else {
            self.call_ended();
        }
        Need::AnotherLook
    }

    fn call_ended(&mut self) {
        self.pending.clear();
        self.section_is_text = false;
        self.answer.call_ended();
    }

    fn break_call(&mut self, fault: Fault, events: &mut Vec<ProcessorEvent>) {
        let State::Body(block) = &self.state else { return };
        let (syntax, position) = (block.syntax, block.reader.position());
        let read = position.max(1);
        if !is_bare(&self.syntaxes[syntax]) || (self.calls.certain() && !fault.is_text) {
            let completed = match self.syntaxes[syntax].reported {
                Reported::AtOnce => block.reader.completed(),
                Reported::WithSection => 0,
            };
            if completed > 0 {
                // Calls before the fault are kept, and their text is not reported as text.
                self.buffer.take(completed);
                self.call_ended();
            }
            let index = self.calls.give_up();
            let (position, read) = (position - completed, read - completed);
            let searched = self.buffer.rest().floor_char_boundary(position);
            self.state = State::Broken(Broken { syntax, fault, index, read, searched });
        } else {
            self.calls.take_back();
            let read = self.buffer.rest().floor_char_boundary(read);
            self.answer.push(self.buffer.take(read), events);
            self.state = State::Answer;
        }
    }

    pub(super) fn advance_broken(&mut self, events: &mut Vec<ProcessorEvent>) -> Need {
        let State::Broken(broken) = &mut self.state else { return Need::AnotherLook };
        let CallSyntax { call, section, .. } = self.syntaxes[broken.syntax];
        let in_section = !section.open.is_empty();
        let next = if in_section { call.open } else { first_marker(&self.syntaxes[broken.syntax]) };
        let (ends, rest) = ([call.close, section.close, next], self.buffer.rest());
        let (end, next) = match scan(&rest[broken.searched..], &ends, self.ended) {
            _ if ends[..2] == ["", ""] => (rest.floor_char_boundary(broken.read), State::Answer),
            Scan::Found { start, marker } => {
                let goes_on = marker != 1 && in_section;
                let next = if goes_on { State::Section(broken.syntax) } else { State::Answer };
                // The next call's marker is read with that call.
                let taken = if marker == 2 { 0 } else { ends[marker].len() };
                (broken.searched + start + taken, next)
            }
            Scan::Clear { .. } if self.ended => (rest.len(), State::Answer),
            Scan::Clear { until } => {
                broken.searched += until;
                return Need::MoreText;
            }
        };
        let State::Broken(broken) = std::mem::replace(&mut self.state, next) else {
            return Need::AnotherLook;
        };
        self.report_broken(broken, end, events);
        Need::AnotherLook
    }

    /// Reports an invalid call with the text up to byte `end`.
    fn report_broken(&mut self, broken: Broken, end: usize, events: &mut Vec<ProcessorEvent>) {
        let Broken { syntax, fault: Fault { kind, reason, .. }, mut index, .. } = broken;
        if self.syntaxes[syntax].reported == Reported::WithSection {
            let begun = |event: &&ProcessorEvent| matches!(event, ProcessorEvent::ToolCallStarted { .. });
            self.calls.take_back_last(self.held.drain(..).filter(|event| begun(&event)).count());
            index = None;
        }
        let in_section = matches!(self.state, State::Section(_));
        let mut text = std::mem::take(&mut self.pending);
        text.push_str(self.buffer.take(end));
        let wanted = match kind {
            CallFault::Unfinished => self.options.on_unfinished,
            CallFault::Malformed | CallFault::Undeclared => self.options.on_malformed,
        };
        match (wanted, index) {
            (OnMalformed::Text, None) => {
                let opening = self.syntaxes[syntax].section.open;
                self.section_is_text |= in_section && text.starts_with(opening);
                return self.answer.push(&text, events);
            }
            (OnMalformed::Text, Some(_)) => self.answer.stays(events),
            (OnMalformed::Error, _) => self.answer.border(Trim::Nothing),
        }
        events.push(ProcessorEvent::Malformed { index, fault: kind, text, reason });
    }
}
