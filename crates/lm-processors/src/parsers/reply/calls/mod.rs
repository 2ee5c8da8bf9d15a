//! Parsing of calls, inside their markers.

mod block;
mod malformed;
mod section;

pub(super) use self::malformed::MalformedCall;
use super::markers::{is_bare, may_start_with, opener};
use super::{ReplyParser, State, Step};
use crate::dialect::{CallSyntax, Undeclared};
use crate::event::ProcessorEvent;
use crate::parsers::body::reader;
use crate::parsers::body_reader::BodyReader;

/// Maximum amount of layout examined to decide what follows.
const MAX_LAYOUT_BYTES: usize = 256;

/// The call block being read.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) syntax: usize,
    reader: Box<dyn BodyReader>,
    /// True before the body, where its opening marker may be repeated.
    at_start: bool,
    /// End of the body, once complete.
    ended: Option<usize>,
    /// Held events of a call without a marker, which may still be text.
    held: Vec<ProcessorEvent>,
}

impl ReplyParser {
    /// Enters calls at their marker of this length at the start of the buffer; `syntax` is the first one with
    /// that marker.
    pub(super) fn enter_calls(&mut self, syntax: usize, len: usize) {
        if !is_bare(&self.syntaxes[syntax]) {
            self.pending = self.buffer.take(len).to_owned();
        }
        self.state = State::SelectSyntax(syntax);
    }

    /// Enters the calls whose marker the prompt ends with, if any.
    pub(super) fn enter_open_calls(&mut self, tail: &str) {
        let open = |syntax: &CallSyntax| !is_bare(syntax) && tail.ends_with(opener(syntax));
        if let Some(syntax) = self.syntaxes.iter().position(open) {
            self.state = State::SelectSyntax(syntax);
        }
    }

    pub(super) fn advance_selection(&mut self, first: usize, events: &mut Vec<ProcessorEvent>) -> Step {
        if !is_bare(&self.syntaxes[first])
            && let Some(step) = self.skip_repeated(opener(&self.syntaxes[first]))
        {
            return step;
        }
        let text = self.buffer.rest();
        let Some(chosen) = self.select_syntax(first, text) else { return Step::NeedText };
        self.answer.begin_call(text, events);
        if self.syntaxes[chosen].section.open.is_empty() {
            self.enter_body(chosen, false);
        } else {
            self.state = State::Section(chosen);
        }
        Step::Continue
    }

    /// Skips a repetition of an opening marker; returns the next step if it is, or may be, repeated.
    fn skip_repeated(&mut self, marker: &str) -> Option<Step> {
        let rest = self.buffer.rest();
        let text = rest.trim_start();
        let layout = rest.len() - text.len();
        if layout > MAX_LAYOUT_BYTES {
            return None;
        }
        if text.starts_with(marker) {
            self.pending.push_str(self.buffer.take(layout + marker.len()));
            return Some(Step::Continue);
        }
        (!self.ended && marker.starts_with(text)).then_some(Step::NeedText)
    }

    /// Enters a call at its marker outside of the section that it requires.
    pub(super) fn enter_inner_call(&mut self, syntax: usize, len: usize, events: &mut Vec<ProcessorEvent>) {
        self.pending = self.buffer.take(len).to_owned();
        self.answer.begin_call("", events);
        self.enter_body(syntax, false);
    }

    /// Selects the syntax that `text` continues, among those with the same marker; `None` if more text is
    /// needed to decide.
    fn select_syntax(&self, first: usize, text: &str) -> Option<usize> {
        let marker = opener(&self.syntaxes[first]);
        let window = &text[..text.floor_char_boundary(MAX_LAYOUT_BYTES)];
        let is_complete = self.ended || window.len() < text.len();
        let candidates =
            self.syntaxes.iter().enumerate().skip(first).filter(|(_, syntax)| opener(syntax) == marker);
        if candidates.clone().nth(1).is_none() {
            return (self.ended || !text.is_empty()).then_some(first);
        }
        for (number, syntax) in candidates {
            match may_start_with(&syntax.body, window) {
                Some(true) => return Some(number),
                None if !is_complete => return None,
                _ => {}
            }
        }
        Some(first)
    }

    fn enter_body(&mut self, syntax: usize, in_section: bool) {
        let reader = reader(&self.syntaxes[syntax], &self.tools, self.tolerance);
        let CallSyntax { section, undeclared, .. } = &self.syntaxes[syntax];
        let by_name = is_bare(&self.syntaxes[syntax]) || *undeclared == Undeclared::Text;
        self.calls.block_begins(by_name || (!in_section && !section.open.is_empty()));
        self.unclosed = None;
        let at_start = !self.syntaxes[syntax].section.open.is_empty();
        self.state = State::Body(Box::new(Block { syntax, reader, at_start, ended: None, held: Vec::new() }));
    }

    fn take_layout(&mut self) {
        let rest = self.buffer.rest();
        let layout = rest.len() - rest.trim_start().len();
        self.pending.push_str(self.buffer.take(layout));
    }

    fn end_call(&mut self) {
        self.pending.clear();
        self.section_is_text = false;
        self.answer.end_call();
    }
}
