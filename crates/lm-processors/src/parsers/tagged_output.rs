//! The parser of families that mark reasoning and calls with tags: one state machine over a table of tags.

use super::marked_json::{Block, MarkedJson};
use super::marker_scan::{Scan, scan};
use super::reasoning_flow::ReasoningFlow;
use super::text_flow::{LineBreakBeforeCall, TextFlow};
use crate::event::ProcessorEvent;
use crate::parser::{OnMalformed, OutputParser, ParserOptions};

/// Two markers and what stands between them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tags {
    pub(crate) open: &'static str,
    pub(crate) close: &'static str,
}

/// A family's tags.
#[derive(Debug)]
pub(crate) struct TagDialect {
    pub(crate) reasoning: Tags,
    pub(crate) call: Tags,
    pub(crate) line_break_before_call: LineBreakBeforeCall,
}

impl TagDialect {
    /// Whether text that ends so leaves the reasoning open.
    pub(crate) fn opens_reasoning(&self, tail: &str) -> bool {
        let open = tail.rfind(self.reasoning.open);
        open.is_some_and(|open| tail.rfind(self.reasoning.close).is_none_or(|close| close < open))
    }
}

#[derive(Debug)]
enum State {
    Answer,
    /// `at_start`: nothing but whitespace has come, so an opening tag that repeats the prompt's is still possible.
    Reasoning {
        at_start: bool,
        flow: ReasoningFlow,
    },
    Call(Box<MarkedJson>),
    /// A call that is none; its end is still looked for, `searched` bytes of its block without success.
    BrokenCall {
        reason: String,
        searched: usize,
    },
}

/// Whether the state machine can go on with the text it has.
enum Need {
    MoreText,
    AnotherLook,
}

/// Reads a reply in a [`TagDialect`].
#[derive(Debug)]
pub(crate) struct TaggedOutput {
    dialect: &'static TagDialect,
    tools_declared: bool,
    on_malformed: OnMalformed,
    state: State,
    /// Text that no event stands for yet; inside a call, all of it since the opening tag.
    buffer: String,
    answer: TextFlow,
    next_index: usize,
}

impl TaggedOutput {
    pub(crate) fn new(dialect: &'static TagDialect, options: &ParserOptions) -> Self {
        let reasoning = State::Reasoning { at_start: true, flow: ReasoningFlow::default() };
        Self {
            dialect,
            tools_declared: !options.tools.is_empty(),
            on_malformed: options.on_malformed,
            state: if options.in_reasoning { reasoning } else { State::Answer },
            buffer: String::new(),
            answer: TextFlow::new(dialect.line_break_before_call),
            next_index: 0,
        }
    }

    fn advance(&mut self, events: &mut Vec<ProcessorEvent>) -> Need {
        match &self.state {
            State::Answer => self.advance_answer(events),
            State::Reasoning { .. } => self.advance_reasoning(events),
            State::Call(_) => self.advance_call(events),
            State::BrokenCall { .. } => self.advance_broken_call(events),
        }
    }

    fn advance_answer(&mut self, events: &mut Vec<ProcessorEvent>) -> Need {
        let markers = [self.dialect.reasoning.open, self.dialect.call.open];
        let markers = &markers[..if self.tools_declared { 2 } else { 1 }];
        match scan(&self.buffer, markers) {
            Scan::Clear { until } => {
                let text: String = self.buffer.drain(..until).collect();
                self.answer.push(&text, events);
                Need::MoreText
            }
            Scan::Found { start, marker } => {
                let text: String = self.buffer.drain(..start + markers[marker].len()).collect();
                self.answer.push(&text[..start], events);
                self.state = if marker == 0 {
                    self.answer.reasoning_begins(events);
                    State::Reasoning { at_start: false, flow: ReasoningFlow::default() }
                } else {
                    State::Call(Box::default())
                };
                Need::AnotherLook
            }
        }
    }

    fn advance_reasoning(&mut self, events: &mut Vec<ProcessorEvent>) -> Need {
        let Tags { open, close } = self.dialect.reasoning;
        let State::Reasoning { at_start, flow } = &mut self.state else { return Need::AnotherLook };
        if *at_start {
            let text = self.buffer.trim_start();
            if text.len() < open.len() && open.starts_with(text) {
                return Need::MoreText;
            }
            *at_start = false;
            if text.starts_with(open) {
                let end = self.buffer.len() - text.len() + open.len();
                self.buffer.drain(..end);
            }
        }
        match scan(&self.buffer, &[close]) {
            Scan::Clear { until } => {
                flow.push(&self.buffer[..until], events);
                self.buffer.drain(..until);
                Need::MoreText
            }
            Scan::Found { start, .. } => {
                flow.push(&self.buffer[..start], events);
                self.buffer.drain(..start + close.len());
                self.answer.reasoning_ended();
                self.state = State::Answer;
                Need::AnotherLook
            }
        }
    }

    fn advance_call(&mut self, events: &mut Vec<ProcessorEvent>) -> Need {
        let State::Call(call) = &mut self.state else { return Need::AnotherLook };
        match call.follow(&self.buffer, self.dialect.call.close, self.next_index, events) {
            Block::Open => return Need::MoreText,
            Block::Complete(end) => self.end_call(end, events),
            Block::Invalid(reason) => self.break_call(reason),
        }
        Need::AnotherLook
    }

    /// The block of a call has ended before byte `end` of the buffer.
    fn end_call(&mut self, end: usize, events: &mut Vec<ProcessorEvent>) {
        let State::Call(call) = &mut self.state else { return };
        match call.finish(&self.buffer, self.next_index, events) {
            Ok(count) => {
                self.next_index += count;
                self.buffer.drain(..end);
                self.answer.border();
                self.state = State::Answer;
            }
            Err(reason) => self.break_call(reason),
        }
    }

    fn break_call(&mut self, reason: String) {
        if matches!(&self.state, State::Call(call) if call.started()) {
            self.next_index += 1;
        }
        self.state = State::BrokenCall { reason, searched: 0 };
    }

    fn advance_broken_call(&mut self, events: &mut Vec<ProcessorEvent>) -> Need {
        let close = self.dialect.call.close;
        let State::BrokenCall { searched, .. } = &mut self.state else { return Need::AnotherLook };
        match self.buffer[*searched..].find(close) {
            Some(start) => {
                let end = *searched + start + close.len();
                self.report_broken_call(end, events);
                Need::AnotherLook
            }
            None => {
                *searched = self.buffer.floor_char_boundary(self.buffer.len().saturating_sub(close.len()));
                Need::MoreText
            }
        }
    }

    /// The text up to byte `end` is what became of the call.
    fn report_broken_call(&mut self, end: usize, events: &mut Vec<ProcessorEvent>) {
        let State::BrokenCall { reason, .. } = std::mem::replace(&mut self.state, State::Answer) else {
            return;
        };
        let block: String = self.buffer.drain(..end).collect();
        let text = format!("{}{block}", self.dialect.call.open);
        match self.on_malformed {
            OnMalformed::Text => self.answer.push(&text, events),
            OnMalformed::Error => {
                self.answer.border();
                events.push(ProcessorEvent::Malformed { text, error: reason });
            }
        }
    }
}

impl OutputParser for TaggedOutput {
    fn push(&mut self, delta: &str) -> Vec<ProcessorEvent> {
        let mut events = Vec::new();
        self.buffer.push_str(delta);
        while matches!(self.advance(&mut events), Need::AnotherLook) {}
        events
    }

    fn finish(&mut self) -> Vec<ProcessorEvent> {
        let mut events = Vec::new();
        let rest = self.buffer.len();
        if matches!(self.state, State::Call(_)) {
            // JSON that is whole is a call, also when the model stopped before the closing tag.
            self.end_call(rest, &mut events);
        }
        match &mut self.state {
            State::Reasoning { flow, .. } => flow.push(&self.buffer, &mut events),
            State::BrokenCall { .. } => self.report_broken_call(rest, &mut events),
            State::Answer | State::Call(_) => self.answer.push(&self.buffer, &mut events),
        }
        self.buffer.clear();
        self.answer.end(&mut events);
        events
    }
}
