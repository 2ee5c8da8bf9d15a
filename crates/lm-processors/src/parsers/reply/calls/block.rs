//! Body of a call, and its closing marker.

use super::MAX_LAYOUT_BYTES;
use crate::dialect::{CallBody, CallSyntax, Reported, Tags, Trim};
use crate::event::ProcessorEvent;
use crate::parsers::body_reader::Progress;
use crate::parsers::call_sink::CallSink;
use crate::parsers::fault::Fault;
use crate::parsers::recovery::Departure;
use crate::parsers::reply::markers::{bare_opener, is_bare};
use crate::parsers::reply::{ReplyParser, State, Step};

/// Text after a complete body.
enum Closing {
    /// The closing marker, or an accepted part of it, which ends after this number of bytes.
    Marker(usize),
    /// Undecided until more text arrives.
    Partial,
    /// Another call between the same markers, after this number of bytes.
    Another(usize),
    /// Other text.
    Missing,
}

impl ReplyParser {
    pub(in crate::parsers::reply) fn advance_body(&mut self, events: &mut Vec<ProcessorEvent>) -> Step {
        let State::Body(block) = &mut self.state else { return Step::Continue };
        if block.ended.is_some() {
            return self.close_call(events);
        }
        if std::mem::take(&mut block.at_start) {
            let open = self.syntaxes[block.syntax].call.open;
            let repeated = self.skip_repeated(open);
            if let (Some(step), State::Body(block)) = (repeated, &mut self.state) {
                block.at_start = true;
                return step;
            }
            return Step::Continue;
        }
        match self.read_body(events) {
            Ok(Progress::Open) => return Step::NeedText,
            Ok(Progress::Complete(end)) => {
                if let State::Body(block) = &mut self.state {
                    block.ended = Some(end);
                }
            }
            Ok(Progress::Answer(end)) => {
                self.buffer.take(end);
                self.pending.clear();
                self.answer.boundary(Trim::Nothing);
                self.state = State::Answer;
            }
            Err(fault) => self.reject_call(fault, events),
        }
        Step::Continue
    }

    /// Continues to read the body, and reports its calls unless they may still be text.
    fn read_body(&mut self, events: &mut Vec<ProcessorEvent>) -> Result<Progress, Fault> {
        let State::Body(block) = &mut self.state else { return Ok(Progress::Open) };
        let (syntax, text) = (&self.syntaxes[block.syntax], self.buffer.rest());
        let bare = is_bare(syntax);
        let sink = match syntax.reported {
            Reported::AtSectionEnd => &mut self.held,
            Reported::Streaming if bare => &mut block.held,
            Reported::Streaming => &mut *events,
        };
        let mut sink = CallSink { state: &mut self.calls, events: sink };
        let result = match block.reader.read(text, &mut sink) {
            Ok(Progress::Open) if self.ended => block.reader.finish(text, &mut sink).map(Progress::Complete),
            result => result,
        };
        // JSON without a marker is a call only as a whole.
        let waits = bare
            && self.options.form.is_none()
            && matches!(syntax.body, CallBody::Json(_))
            && result.as_ref().map_or_else(|fault| fault.is_text, |progress| *progress == Progress::Open);
        if !waits && (self.calls.certain() || matches!(result, Ok(Progress::Complete(_)))) {
            events.append(&mut block.held);
        }
        result
    }

    /// Reads the closing marker after a complete body. A missing one is tolerated: other text is not part of
    /// the call.
    fn close_call(&mut self, events: &mut Vec<ProcessorEvent>) -> Step {
        let State::Body(block) = &self.state else { return Step::Continue };
        let (number, end) = (block.syntax, block.ended.unwrap_or_default());
        let reported = self.syntaxes[number].reported;
        match self.closing(&self.syntaxes[number], &self.buffer.rest()[end..]) {
            Closing::Partial => return Step::NeedText,
            Closing::Marker(len) => self.leave_call(number, end + len),
            Closing::Another(_) | Closing::Missing if reported == Reported::AtSectionEnd => {
                self.reject_call(Fault::malformed("text follows the call"), events);
            }
            Closing::Another(len) => {
                self.buffer.take(end + len);
                self.end_call();
                self.enter_body(number, true);
            }
            Closing::Missing => {
                self.unclosed = Some(number);
                self.leave_call(number, end);
            }
        }
        Step::Continue
    }

    /// Searches for the closing marker in the text `after` a complete body.
    fn closing(&self, syntax: &CallSyntax, after: &str) -> Closing {
        let CallSyntax { call: Tags { close, .. }, body, .. } = *syntax;
        let rest = after.trim_start();
        let layout = after.len() - rest.len();
        let another = if close.is_empty() { "" } else { bare_opener(&body) };
        let may_come = |marker: &str| !rest.starts_with(marker) && marker.starts_with(rest);
        // Unmatched closing brackets before the closing marker are ignored.
        let may_be_stray = matches!(body, CallBody::Json(_) | CallBody::Named(_))
            && self.tolerance.accepts(Departure::StrayBrackets);
        let is_ignored = |c: char| c.is_whitespace() || (may_be_stray && matches!(c, '}' | ']'));
        let behind = after.trim_start_matches(is_ignored);
        let ignored = after.len() - behind.len();
        let may_close = ignored > layout && ignored <= MAX_LAYOUT_BYTES && close.starts_with(behind);
        // Objects may be separated by commas as well.
        let next = rest.strip_prefix(',').filter(|_| may_be_stray).map_or(rest, str::trim_start);
        let may_follow = may_come(close) || may_come(another) || next.is_empty();
        match () {
            () if close.is_empty() => Closing::Marker(0),
            () if rest.starts_with(close) => Closing::Marker(layout + close.len()),
            () if behind.starts_with(close) => Closing::Marker(ignored + close.len()),
            () if !self.ended && may_close => Closing::Partial,
            () if self.ended && close.starts_with(rest) => Closing::Marker(after.len()),
            () if !self.ended && layout <= MAX_LAYOUT_BYTES && may_follow => Closing::Partial,
            () if !another.is_empty() && next.starts_with(another) => {
                Closing::Another(after.len() - next.len())
            }
            () => Closing::Missing,
        }
    }

    /// Consumes `taken` bytes, a call with its closing marker.
    fn leave_call(&mut self, number: usize, taken: usize) {
        let CallSyntax { section, separator, reported, .. } = self.syntaxes[number];
        self.state = match () {
            () if !section.open.is_empty() => State::Section(number),
            () if !separator.trim().is_empty() => State::Between(separator.trim()),
            () => State::Answer,
        };
        let text = self.buffer.take(taken);
        if reported == Reported::AtSectionEnd {
            self.pending.push_str(text);
        } else {
            self.end_call();
        }
    }
}
