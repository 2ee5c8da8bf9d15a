//! The parser of every dialect: one state machine over its table of markers.

use std::borrow::Cow;

use super::body::{BodyReader, CallSink, CallState, Fault, Progress, reader};
use super::channel_flow::ChannelFlow;
use super::marker_scan::{Scan, scan};
use super::text_buffer::TextBuffer;
use super::text_flow::TextFlow;
use crate::dialect::{
    CallBody, CallSyntax, CallsInside, ChannelSyntax, Count, Dialect, StrayEnd, Tags, Trim,
};
use crate::event::ProcessorEvent;
use crate::parser::{OnMalformed, OutputParser, ParserOptions};

/// What a marker in the answer means.
#[derive(Debug, Clone, Copy)]
enum Meaning {
    ChannelStart(usize),
    StrayEnd(usize),
    SectionOpen(usize),
    CallOpen(usize),
    /// The first character of a call without a marker.
    Bare(usize),
    Dropped(Tags),
}

#[derive(Debug)]
enum State {
    Answer,
    /// In text that is dropped up to this marker.
    Dropping(&'static str),
    /// `at_start`: nothing but whitespace has come, so an opening marker that repeats the prompt's is still possible.
    Channel {
        number: usize,
        at_start: bool,
        flow: ChannelFlow,
    },
    /// In a section, before or between its calls.
    Section(usize),
    Body(Box<Block>),
    /// A call that is none; its end is still looked for, `searched` bytes of its block without success.
    Broken {
        syntax: usize,
        fault: Fault,
        searched: usize,
        /// How many bytes of it were read as a call.
        position: usize,
    },
}

/// The block of a call that is being read.
#[derive(Debug)]
struct Block {
    syntax: usize,
    reader: Box<dyn BodyReader>,
    /// Up to where the body is read, and whitespace after it, once the body is complete.
    ended: Option<usize>,
    /// Events of a call without a marker, which may still turn out to be text.
    held: Vec<ProcessorEvent>,
}

/// Whether the state machine can go on with the text it has.
enum Need {
    MoreText,
    AnotherLook,
}

/// Reads a reply in a [`Dialect`].
#[derive(Debug)]
pub(crate) struct ReplyParser {
    syntaxes: &'static [CallSyntax],
    channels: Vec<ChannelSyntax>,
    marker_texts: Vec<Cow<'static, str>>,
    meanings: Vec<Meaning>,
    call_markers: Vec<&'static str>,
    options: ParserOptions,
    state: State,
    buffer: TextBuffer,
    ended: bool,
    answer: TextFlow,
    calls: CallState,
    /// The markers of calls that were taken from the buffer and belong to what may become text.
    pending: String,
}

impl ReplyParser {
    pub(crate) fn new(
        dialect: &'static Dialect,
        channels: Vec<ChannelSyntax>,
        options: &ParserOptions,
    ) -> Self {
        let syntaxes = if options.tools.is_empty() { &[] } else { dialect.calls };
        let undeclared = syntaxes.first().map_or(crate::dialect::Undeclared::Call, |first| first.undeclared);
        let (marker_texts, meanings) = markers(dialect, &channels, syntaxes).into_iter().unzip();
        let mut parser = Self {
            syntaxes,
            marker_texts,
            meanings,
            call_markers: syntaxes.iter().map(first_marker).collect(),
            channels,
            options: options.clone(),
            state: State::Answer,
            buffer: TextBuffer::default(),
            ended: false,
            answer: TextFlow::new(&dialect.answer),
            calls: CallState::new(options.tools.clone(), undeclared),
            pending: String::new(),
        };
        if options.in_reasoning && !parser.channels.is_empty() {
            parser.enter_channel(0, true);
        }
        parser
    }

    fn enter_channel(&mut self, number: usize, at_start: bool) {
        let flow = ChannelFlow::new(&self.channels[number]);
        self.state = State::Channel { number, at_start, flow };
    }

    fn advance(&mut self, events: &mut Vec<ProcessorEvent>) -> Need {
        match &self.state {
            State::Answer => self.advance_answer(events),
            State::Dropping(until) => self.advance_dropping(until),
            State::Channel { .. } => self.advance_channel(events),
            State::Section(syntax) => self.advance_section(*syntax),
            State::Body(_) => self.advance_body(events),
            State::Broken { .. } => self.advance_broken(events),
        }
    }

    fn advance_answer(&mut self, events: &mut Vec<ProcessorEvent>) -> Need {
        match scan(self.buffer.rest(), &self.marker_texts, self.ended) {
            Scan::Clear { until } => {
                self.answer.push(self.buffer.take(until), events);
                Need::MoreText
            }
            Scan::Found { start, marker } => {
                self.answer.push(self.buffer.take(start), events);
                self.marker(self.marker_texts[marker].len(), self.meanings[marker], events);
                Need::AnotherLook
            }
        }
    }

    /// A marker of this length stands at the front of the buffer.
    fn marker(&mut self, len: usize, meaning: Meaning, events: &mut Vec<ProcessorEvent>) {
        match meaning {
            Meaning::Bare(syntax) => return self.enter_call(syntax),
            Meaning::StrayEnd(number)
                if self.channels[number].stray_end == StrayEnd::DroppedAtStart
                    && !self.answer.at_border() =>
            {
                return self.answer.push(self.buffer.take(len), events);
            }
            _ => {}
        }
        let text = self.buffer.take(len);
        match meaning {
            Meaning::ChannelStart(number) => {
                self.answer.channel_begins(events);
                self.enter_channel(number, false);
            }
            Meaning::StrayEnd(_) | Meaning::Bare(_) => {}
            Meaning::Dropped(Tags { close: "", .. }) => {}
            Meaning::Dropped(tags) => self.state = State::Dropping(tags.close),
            Meaning::SectionOpen(syntax) => {
                self.pending = text.to_owned();
                self.state = State::Section(syntax);
            }
            Meaning::CallOpen(syntax) => {
                self.pending = text.to_owned();
                self.enter_call(syntax);
            }
        }
    }

    fn advance_dropping(&mut self, until: &'static str) -> Need {
        match scan(self.buffer.rest(), &[until], self.ended) {
            Scan::Clear { until } => {
                self.buffer.take(until);
                Need::MoreText
            }
            Scan::Found { start, .. } => {
                self.buffer.take(start + until.len());
                self.state = State::Answer;
                Need::AnotherLook
            }
        }
    }

    fn advance_channel(&mut self, events: &mut Vec<ProcessorEvent>) -> Need {
        let State::Channel { number, at_start, flow } = &mut self.state else { return Need::AnotherLook };
        let syntax = &self.channels[*number];
        let calls = if syntax.calls_inside == CallsInside::Text { &[][..] } else { &self.call_markers };
        if *at_start {
            let text = self.buffer.rest().trim_start();
            let layout = self.buffer.rest().len() - text.len();
            let open = &*syntax.channel.start;
            if !self.ended
                && calls.iter().chain([&open]).any(|marker| marker.starts_with(text) && *marker != text)
            {
                return Need::MoreText;
            }
            *at_start = false;
            if text.starts_with(open) {
                self.buffer.take(layout + open.len());
            } else if calls.iter().any(|marker| text.starts_with(marker)) {
                self.buffer.take(layout);
                return self.leave_channel(Trim::Nothing);
            }
        }
        let calls = if syntax.calls_inside == CallsInside::End { calls } else { &[] };
        let mut ends = vec![&*syntax.channel.end];
        ends.extend(calls);
        match scan(self.buffer.rest(), &ends, self.ended) {
            Scan::Clear { until } => {
                flow.push(self.buffer.take(until), events);
                if self.ended {
                    flow.end(events);
                }
                Need::MoreText
            }
            Scan::Found { start, marker } => {
                flow.push(self.buffer.take(start), events);
                self.buffer.take(if marker == 0 { ends[0].len() } else { 0 });
                let trim = syntax.trim_after;
                self.leave_channel(trim)
            }
        }
    }

    fn leave_channel(&mut self, trim: Trim) -> Need {
        self.answer.border(trim);
        self.state = State::Answer;
        Need::AnotherLook
    }

    fn advance_section(&mut self, syntax: usize) -> Need {
        let CallSyntax { section, separator, call, .. } = self.syntaxes[syntax];
        let rest = self.buffer.rest();
        let text = rest.trim_start();
        let text = text.strip_prefix(separator.trim()).map_or(text, str::trim_start);
        let layout = rest.len() - text.len();
        if text.starts_with(section.close) && !section.close.is_empty() {
            self.buffer.take(layout + section.close.len());
            self.answer.call_ended();
            self.state = State::Answer;
        } else if text.starts_with(call.open) && !text.is_empty() {
            self.pending.push_str(self.buffer.take(layout + call.open.len()));
            self.enter_call(syntax);
        } else if self.ended || !(section.close.starts_with(text) || call.open.starts_with(text)) {
            let reason = if self.ended { "it is unfinished" } else { "text stands between the calls" };
            self.state = State::Broken { syntax, fault: Fault::malformed(reason), searched: 0, position: 0 };
        } else {
            return Need::MoreText;
        }
        Need::AnotherLook
    }

    fn enter_call(&mut self, syntax: usize) {
        let reader = reader(&self.syntaxes[syntax], &self.options.tools);
        self.state = State::Body(Box::new(Block { syntax, reader, ended: None, held: Vec::new() }));
    }

    fn advance_body(&mut self, events: &mut Vec<ProcessorEvent>) -> Need {
        let State::Body(block) = &mut self.state else { return Need::AnotherLook };
        let syntax = &self.syntaxes[block.syntax];
        let bare = is_bare(syntax);
        let text = self.buffer.rest();
        if block.ended.is_none() {
            let sink = if bare { &mut block.held } else { &mut *events };
            let mut sink = CallSink { state: &mut self.calls, events: sink };
            let result = match block.reader.follow(text, &mut sink) {
                Ok(Progress::Open) if self.ended => {
                    block.reader.finish(text, &mut sink).map(|()| Progress::Complete(text.len()))
                }
                result => result,
            };
            if self.calls.certain() || matches!(result, Ok(Progress::Complete(_))) {
                events.append(&mut block.held);
            }
            match result {
                Ok(Progress::Open) => return Need::MoreText,
                Ok(Progress::Complete(end)) => block.ended = Some(end),
                Err(fault) => {
                    self.break_call(fault, events);
                    return Need::AnotherLook;
                }
            }
        }
        self.close_call(events)
    }

    /// The body is complete: its closing marker follows, or, at the end of the reply, is forgiven.
    fn close_call(&mut self, events: &mut Vec<ProcessorEvent>) -> Need {
        let State::Body(block) = &mut self.state else { return Need::AnotherLook };
        let CallSyntax { call, section, .. } = self.syntaxes[block.syntax];
        let text = &self.buffer.rest()[block.ended.unwrap_or_default()..];
        let rest = text.trim_start();
        let layout = text.len() - rest.len();
        let end = block.ended.unwrap_or_default() + if call.close.is_empty() { 0 } else { layout };
        if !(rest.starts_with(call.close) || self.ended && call.close.starts_with(rest)) {
            if !call.close.starts_with(rest) {
                self.break_call(Fault::malformed("text follows the call"), events);
                return Need::AnotherLook;
            }
            block.ended = Some(end);
            return Need::MoreText;
        }
        self.state = if section == Tags::NONE { State::Answer } else { State::Section(block.syntax) };
        let closed = end + call.close.len().min(rest.len());
        self.buffer.take(closed);
        self.pending.clear();
        self.answer.call_ended();
        Need::AnotherLook
    }

    fn break_call(&mut self, fault: Fault, events: &mut Vec<ProcessorEvent>) {
        let State::Body(block) = &self.state else { return };
        let (syntax, position) = (block.syntax, block.reader.position());
        let never_said = is_bare(&self.syntaxes[syntax]) && !self.calls.certain();
        self.calls.give_up();
        if never_said {
            self.answer.push_all(self.buffer.take(position), events);
            self.state = State::Answer;
        } else {
            self.state = State::Broken { syntax, fault, searched: 0, position };
        }
    }

    fn advance_broken(&mut self, events: &mut Vec<ProcessorEvent>) -> Need {
        let State::Broken { syntax, searched, position, .. } = &mut self.state else {
            return Need::AnotherLook;
        };
        let CallSyntax { call, section, .. } = self.syntaxes[*syntax];
        let close = if call.close.is_empty() { section.close } else { call.close };
        let end = match scan(&self.buffer.rest()[*searched..], &[close], self.ended) {
            _ if close.is_empty() => *position,
            Scan::Found { start, .. } => *searched + start + close.len(),
            Scan::Clear { .. } if self.ended => self.buffer.rest().len(),
            Scan::Clear { until } => {
                *searched += until;
                return Need::MoreText;
            }
        };
        self.report_broken(end, events);
        Need::AnotherLook
    }

    /// The text up to byte `end` is what became of the call.
    fn report_broken(&mut self, end: usize, events: &mut Vec<ProcessorEvent>) {
        let State::Broken { fault, .. } = std::mem::replace(&mut self.state, State::Answer) else {
            return;
        };
        let mut text = std::mem::take(&mut self.pending);
        text.push_str(self.buffer.take(end));
        match self.options.on_malformed {
            OnMalformed::Text => self.answer.push_all(&text, events),
            OnMalformed::Error => {
                self.answer.border(Trim::Nothing);
                events.push(ProcessorEvent::Malformed { text, error: fault.reason });
            }
        }
    }
}

fn is_bare(syntax: &CallSyntax) -> bool {
    syntax.section.open.is_empty() && syntax.call.open.is_empty()
}

fn markers(
    dialect: &Dialect,
    channels: &[ChannelSyntax],
    syntaxes: &'static [CallSyntax],
) -> Vec<(Cow<'static, str>, Meaning)> {
    let mut markers = Vec::new();
    for (number, syntax) in channels.iter().enumerate() {
        markers.push((syntax.channel.start.clone(), Meaning::ChannelStart(number)));
        if syntax.stray_end != StrayEnd::Text {
            markers.push((syntax.channel.end.clone(), Meaning::StrayEnd(number)));
        }
    }
    for (number, syntax) in syntaxes.iter().enumerate() {
        let meaning = match (syntax.section.open, syntax.call.open) {
            ("", "") => Meaning::Bare(number),
            ("", _) => Meaning::CallOpen(number),
            _ => Meaning::SectionOpen(number),
        };
        markers.push((first_marker(syntax).into(), meaning));
    }
    let Tags { open, close, .. } = dialect.answer.tags;
    let own = [Tags::new(open, ""), Tags::new(close, "")];
    for tags in own.iter().chain(dialect.answer.dropped) {
        markers.push((tags.open.into(), Meaning::Dropped(*tags)));
    }
    markers
}

/// The text that tells that calls begin.
fn first_marker(syntax: &CallSyntax) -> &'static str {
    match (syntax.section.open, syntax.call.open) {
        ("", "") => bare_start(&syntax.body),
        ("", call) => call,
        (section, _) => section,
    }
}

/// The character that a call without a marker begins with.
fn bare_start(body: &CallBody) -> &'static str {
    match body {
        CallBody::Json(json) if json.count == Count::One => "{",
        CallBody::Json(_) | CallBody::Python(_) => "[",
        CallBody::Named(named) => named.before_name,
        CallBody::Parameters(parameters) => parameters.name.open,
        CallBody::Braces(braces) => braces.before_name,
    }
}

impl OutputParser for ReplyParser {
    fn push(&mut self, delta: &str) -> Vec<ProcessorEvent> {
        let mut events = Vec::new();
        self.buffer.push(delta);
        while matches!(self.advance(&mut events), Need::AnotherLook) {}
        events
    }

    fn finish(&mut self) -> Vec<ProcessorEvent> {
        self.ended = true;
        let mut events = self.push("");
        self.answer.end(&mut events);
        events
    }
}
