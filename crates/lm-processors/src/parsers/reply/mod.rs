//! Parser of all dialects: one state machine over a dialect's markers.

mod answer;
mod calls;
mod channel;
mod form;
mod markers;
mod message_header;
mod messages;

use self::calls::{Block, MalformedCall};
use self::channel::InChannel;
use self::markers::Markers;
pub(crate) use self::markers::after_channel;
pub(crate) use self::messages::MessageParser;
use super::call_sink::CallState;
use super::recovery::{Departure, Tolerance};
use super::text_buffer::TextBuffer;
use super::text_flow::TextFlow;
use super::tools::Tools;
use crate::channel::{Channel, ReplyChannel};
use crate::dialect::{CallSyntax, Dialect, Trim, Undeclared, Unmarked, UnmatchedEnd};
use crate::event::ProcessorEvent;
use crate::grammar_request::Thinking;
use crate::parser::{OutputParser, ParserOptions, ReadCalls, Recovery};

#[derive(Debug)]
enum State {
    Answer,
    /// Before an answer of a given format, or calls instead, preceded by this layout, which may also be text.
    ReplyStart {
        layout: Trim,
        layout_is_text: bool,
    },
    /// In an answer of a given format, which ends with the reply.
    Formatted,
    /// Unknown prompt: text is held back until a marker shows if it belongs to the answer or a channel.
    Undecided {
        searched: usize,
    },
    Channel(InChannel),
    /// After the marker of these calls; the next text determines the syntax among those with that marker.
    SelectSyntax(usize),
    /// In a section, before or between its calls.
    Section(usize),
    /// After a call without a section; this may separate it from the next.
    Between(&'static str),
    Body(Box<Block>),
    Malformed(MalformedCall),
}

/// Next step of the state machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    NeedText,
    Continue,
}

/// Parser of a reply in a [`Dialect`].
#[derive(Debug)]
pub(crate) struct ReplyParser {
    dialect: &'static Dialect,
    /// The dialect's call syntaxes; empty if no calls are read.
    syntaxes: &'static [CallSyntax],
    channels: Vec<ReplyChannel>,
    markers: Markers,
    options: ParserOptions,
    tolerance: Tolerance,
    tools: Tools,
    state: State,
    buffer: TextBuffer,
    ended: bool,
    answer: TextFlow,
    calls: CallState,
    /// Consumed markers of calls, which may still become text.
    pending: String,
    /// Events held until the current section ends.
    held: Vec<ProcessorEvent>,
    /// True if the opening marker of the current section became text; the closing one then does as well.
    section_is_text: bool,
    /// The open section, while text of the answer interrupts it.
    open_section: Option<usize>,
    /// Syntax of the last call, if its closing marker is still missing.
    unclosed: Option<usize>,
    /// Number of calls that were read to the end of the reply without success.
    unfinished: usize,
    /// True if a call in an unterminated channel is a call.
    calls_in_channels: bool,
    /// The channel that ended last.
    after_channel: Option<usize>,
}

impl ReplyParser {
    pub(crate) fn new(dialect: &'static Dialect, options: &ParserOptions) -> Self {
        let form = options.form.as_ref();
        let mut channels = ReplyChannel::all(dialect.channels, options.channels.as_deref());
        if form.is_some_and(|form| form.thinking == Thinking::Forbidden) {
            channels.clear();
        }
        let syntaxes = syntaxes(dialect, options);
        // A reply under a grammar has no defects.
        let recovery = if form.is_some() { Recovery::Off } else { options.recovery };
        let (tolerance, tools) = (Tolerance::of(recovery), Tools::new(options.tools.clone()));
        let family = syntaxes.first().map_or(Undeclared::Call, |first| first.undeclared);
        let undeclared = options.undeclared.unwrap_or(family);
        let mut parser = Self {
            dialect,
            syntaxes,
            markers: Markers::new(dialect, &channels, syntaxes, tolerance),
            channels,
            options: options.clone(),
            tolerance,
            state: State::Answer,
            buffer: TextBuffer::default(),
            ended: false,
            answer: TextFlow::new(&dialect.answer),
            calls: CallState::new(tools.clone(), undeclared),
            tools,
            pending: String::new(),
            held: Vec::new(),
            section_is_text: false,
            open_section: None,
            unclosed: None,
            unfinished: 0,
            calls_in_channels: tolerance.accepts(Departure::CallInChannel),
            after_channel: None,
        };
        parser.begin();
        parser
    }

    /// Configures the parser for replies of messages: each call is a separate message.
    fn in_messages(self) -> Self {
        Self { calls_in_channels: false, ..self }
    }

    /// Sets the state in which the prompt left the model.
    fn begin(&mut self) {
        self.state = self.start_state(Trim::Nothing, false);
        let opened = self.options.form.as_ref().map(|form| form.thinking);
        match self.options.prompt_tail.clone() {
            None if opened == Some(Thinking::Open) && !self.channels.is_empty() => {
                let start = self.channels[0].channel.start.clone();
                self.enter_channel(0, Some(&start));
            }
            None if opened.is_some() => {}
            Some(tail) => {
                if let Some((number, start)) =
                    open_channel(self.channels.iter().map(|channel| &channel.channel), &tail)
                {
                    self.enter_channel(number, Some(&tail[start..]));
                } else {
                    self.enter_open_calls(&tail);
                }
            }
            None => {
                match self.channels.first().map(|first| (first.syntax.unmarked, first.syntax.unmatched_end)) {
                    Some((Unmarked::Channel, _)) => {
                        let start = self.channels[0].channel.start.clone();
                        self.enter_channel(0, Some(&start));
                    }
                    Some((Unmarked::Answer, UnmatchedEnd::EndsChannel)) => {
                        self.state = State::Undecided { searched: 0 }
                    }
                    _ => {}
                }
            }
        }
    }

    fn advance(&mut self, events: &mut Vec<ProcessorEvent>) -> Step {
        match &self.state {
            State::Answer => self.advance_answer(events),
            State::ReplyStart { .. } => self.advance_reply_start(events),
            State::Formatted => self.advance_formatted(events),
            State::Undecided { .. } => self.advance_undecided(),
            State::Channel(_) => self.advance_channel(events),
            State::SelectSyntax(first) => self.advance_selection(*first, events),
            State::Section(syntax) => self.advance_section(*syntax, events),
            State::Between(separator) => self.advance_between(separator),
            State::Body(_) => self.advance_body(events),
            State::Malformed { .. } => self.advance_malformed(events),
        }
    }

    fn advance_all(&mut self) -> Vec<ProcessorEvent> {
        let mut events = Vec::new();
        while self.advance(&mut events) == Step::Continue {}
        events
    }
}

/// Call syntaxes to search for: all that the family reads, or the one that a grammar writes.
fn syntaxes(dialect: &'static Dialect, options: &ParserOptions) -> &'static [CallSyntax] {
    let reads_calls = match (options.calls, &options.form) {
        (ReadCalls::Never, _) => false,
        (_, Some(form)) => !form.tools.is_empty(),
        (ReadCalls::WhenDeclared, None) => !options.tools.is_empty(),
        (ReadCalls::Always, None) => true,
    };
    match options.form {
        _ if !reads_calls => &[],
        Some(_) => dialect.calls.get(..1).unwrap_or_default(),
        None => dialect.calls,
    }
}

/// Finds the channel left open by a prompt that ends with `tail`, and its start there.
pub(crate) fn open_channel<'a>(
    channels: impl IntoIterator<Item = &'a Channel>,
    tail: &str,
) -> Option<(usize, usize)> {
    let open = |(number, channel): (usize, &Channel)| {
        let start = tail.rfind(&*channel.start)?;
        let after = start + channel.start.len();
        (!tail[after..].contains(&*channel.end)).then_some((number, start))
    };
    channels.into_iter().enumerate().filter_map(open).max_by_key(|(_, start)| *start)
}

impl OutputParser for ReplyParser {
    fn push(&mut self, delta: &str) -> Vec<ProcessorEvent> {
        self.buffer.push(delta);
        self.advance_all()
    }

    fn finish(&mut self) -> Vec<ProcessorEvent> {
        self.ended = true;
        let mut events = self.advance_all();
        self.answer.end(&mut events);
        events
    }
}
