//! Invalid calls, and the search for their end.

use crate::dialect::{CallSyntax, Reported, Trim};
use crate::event::{CallFault, ProcessorEvent};
use crate::parser::OnMalformed;
use crate::parsers::fault::Fault;
use crate::parsers::marker_scan::{Scan, scan};
use crate::parsers::reply::markers::{is_bare, opener};
use crate::parsers::reply::{ReplyParser, State, Step};

/// Maximum number of calls in a reply that are read to its end without success. Text after the start of the
/// next one is not a call.
const MAX_UNFINISHED: usize = 1;

/// Invalid call, before its end is found.
#[derive(Debug)]
pub(in crate::parsers::reply) struct MalformedCall {
    syntax: usize,
    fault: Fault,
    /// Index of the call, if its start was reported.
    index: Option<usize>,
    /// Number of bytes read as a call.
    read: usize,
    /// Number of bytes searched for its end. Bytes read as part of the call are not searched: a marker inside
    /// a string ends nothing.
    searched: usize,
}

/// Marker that ends an invalid call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Call,
    Section,
    /// Marker of the next call, which is read with that call.
    NextCall,
}

impl MalformedCall {
    /// Creates an unread call of this syntax.
    pub(super) fn new(syntax: usize, fault: Fault) -> Self {
        Self { syntax, fault, index: None, read: 0, searched: 0 }
    }
}

impl ReplyParser {
    pub(super) fn reject_call(&mut self, fault: Fault, events: &mut Vec<ProcessorEvent>) {
        let State::Body(block) = &self.state else { return };
        let (syntax, position) = (block.syntax, block.reader.position());
        self.unfinished += usize::from(fault.kind == CallFault::Unfinished);
        // Each call that nothing ends is read to the end of the reply.
        let read = if self.unfinished > MAX_UNFINISHED { self.buffer.rest().len() } else { position.max(1) };
        if !is_bare(&self.syntaxes[syntax]) || (self.calls.certain() && !fault.is_text) {
            let completed = match self.syntaxes[syntax].reported {
                Reported::Streaming => block.reader.completed(),
                Reported::AtSectionEnd => 0,
            };
            if completed > 0 {
                // Calls before the fault are kept, and their text is not reported as text.
                self.buffer.take(completed);
                self.end_call();
            }
            let index = self.calls.abandon();
            let (position, read) = (position - completed, read - completed);
            let searched = self.buffer.rest().floor_char_boundary(position);
            self.state = State::Malformed(MalformedCall { syntax, fault, index, read, searched });
        } else {
            self.calls.rollback();
            let read = self.buffer.rest().floor_char_boundary(read);
            self.answer.push(self.buffer.take(read), events);
            self.state = State::Answer;
        }
    }

    pub(in crate::parsers::reply) fn advance_malformed(&mut self, events: &mut Vec<ProcessorEvent>) -> Step {
        let State::Malformed(malformed) = &mut self.state else { return Step::Continue };
        let CallSyntax { call, section, .. } = self.syntaxes[malformed.syntax];
        let in_section = !section.open.is_empty();
        let next = if in_section { call.open } else { opener(&self.syntaxes[malformed.syntax]) };
        let ends = [(End::Call, call.close), (End::Section, section.close), (End::NextCall, next)];
        let rest = self.buffer.rest();
        let (end, next) = match scan(&rest[malformed.searched..], &ends, self.ended) {
            _ if call.close.is_empty() && section.close.is_empty() => {
                (rest.floor_char_boundary(malformed.read), State::Answer)
            }
            Scan::Found { marker, start, len } => {
                let goes_on = marker != End::Section && in_section;
                let next = if goes_on { State::Section(malformed.syntax) } else { State::Answer };
                let taken = if marker == End::NextCall { 0 } else { len };
                (malformed.searched + start + taken, next)
            }
            Scan::Clear { .. } if self.ended => (rest.len(), State::Answer),
            Scan::Clear { until } => {
                malformed.searched += until;
                return Step::NeedText;
            }
        };
        let State::Malformed(malformed) = std::mem::replace(&mut self.state, next) else {
            return Step::Continue;
        };
        self.report_malformed(malformed, end, events);
        Step::Continue
    }

    /// Reports an invalid call with the text up to byte `end`.
    fn report_malformed(&mut self, malformed: MalformedCall, end: usize, events: &mut Vec<ProcessorEvent>) {
        let MalformedCall { syntax, fault: Fault { kind, reason, is_text }, mut index, .. } = malformed;
        if self.syntaxes[syntax].reported == Reported::AtSectionEnd {
            let is_start = |event: &&ProcessorEvent| matches!(event, ProcessorEvent::ToolCallStarted { .. });
            self.calls.rollback_last(self.held.drain(..).filter(|event| is_start(&event)).count());
            index = None;
        }
        let in_section = matches!(self.state, State::Section(_));
        let mut text = std::mem::take(&mut self.pending);
        text.push_str(self.buffer.take(end));
        let wanted = match kind {
            CallFault::Undeclared if is_text => OnMalformed::Text,
            CallFault::Unfinished => self.options.on_unfinished,
            CallFault::Malformed | CallFault::Undeclared => self.options.on_malformed,
        };
        let has_opening = text.starts_with(self.syntaxes[syntax].section.open);
        self.section_is_text |= wanted == OnMalformed::Text && in_section && has_opening;
        match (wanted, index) {
            (OnMalformed::Text, None) => return self.answer.push(&text, events),
            (OnMalformed::Text, Some(_)) => self.answer.keep_held(events),
            (OnMalformed::Error, _) => self.answer.boundary(Trim::Nothing),
        }
        events.push(ProcessorEvent::Malformed { index, fault: kind, text, reason });
    }
}
