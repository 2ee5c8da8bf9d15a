//! Sections of calls, and the text between calls.

use super::{MAX_LAYOUT_BYTES, MalformedCall};
use crate::dialect::{CallSyntax, Reported};
use crate::event::ProcessorEvent;
use crate::parsers::fault::Fault;
use crate::parsers::reply::markers::opener;
use crate::parsers::reply::{ReplyParser, State, Step};

impl ReplyParser {
    pub(in crate::parsers::reply) fn advance_section(
        &mut self,
        number: usize,
        events: &mut Vec<ProcessorEvent>,
    ) -> Step {
        let CallSyntax { section, call, reported, .. } = self.syntaxes[number];
        self.take_layout();
        let rest = self.buffer.rest();
        let may_come = |marker: &str| marker.len() > rest.len() && marker.starts_with(rest);
        if !section.close.is_empty() && rest.starts_with(section.close) {
            self.close_section(section.close.len(), events);
        } else if !rest.is_empty() && rest.starts_with(call.open) {
            self.pending.push_str(self.buffer.take(call.open.len()));
            self.enter_body(number, true);
        } else if !section.open.is_empty() && rest.starts_with(section.open) {
            self.pending.push_str(self.buffer.take(section.open.len()));
        } else if !self.ended
            && (rest.is_empty() || [section.open, section.close, call.open].into_iter().any(may_come))
        {
            return Step::NeedText;
        } else if rest.is_empty() && self.pending.trim().is_empty() {
            // Only the closing marker of the section is missing, and all its text is reported.
            self.pending.clear();
            self.state = State::Answer;
        } else if self.pending.trim().is_empty() && reported == Reported::Streaming {
            // Text between two calls: the section continues after it.
            let layout = std::mem::take(&mut self.pending);
            self.answer.push(&layout, events);
            self.open_section = Some(number);
            self.state = State::Answer;
        } else {
            let reason = "expected a call, got text";
            let fault = if rest.is_empty() { Fault::unfinished() } else { Fault::malformed(reason) };
            self.state = State::Malformed(MalformedCall::new(number, fault));
        }
        Step::Continue
    }

    /// Consumes the section's closing marker, of this length, at the start of the buffer.
    fn close_section(&mut self, len: usize, events: &mut Vec<ProcessorEvent>) {
        self.pending.push_str(self.buffer.take(len));
        let close = std::mem::take(&mut self.pending);
        if std::mem::take(&mut self.section_is_text) {
            self.answer.push(&close, events);
        } else {
            events.append(&mut self.held);
            self.answer.end_call();
        }
        self.open_section = None;
        self.state = State::Answer;
    }

    /// Consumes the separator of two calls without a section, if another call follows.
    pub(in crate::parsers::reply) fn advance_between(&mut self, separator: &'static str) -> Step {
        let rest = self.buffer.rest();
        let text = rest.trim_start();
        let next = text.strip_prefix(separator).map(str::trim_start);
        let layout = rest.len() - next.unwrap_or(text).len();
        let open = match next {
            None => separator.starts_with(text),
            Some(next) => self.syntaxes.iter().any(|syntax| {
                let marker = opener(syntax);
                marker.len() > next.len() && marker.starts_with(next)
            }),
        };
        if open && !self.ended && layout <= MAX_LAYOUT_BYTES {
            return Step::NeedText;
        }
        let follows = |syntax: &CallSyntax| next.is_some_and(|next| next.starts_with(opener(syntax)));
        if layout <= MAX_LAYOUT_BYTES && self.syntaxes.iter().any(follows) {
            self.buffer.take(layout);
        }
        self.state = State::Answer;
        Step::Continue
    }
}
