//! Replies that consist of messages with headers; each header is translated to the markers of the dialect.

use super::message_header::{Header, MAX_HEADER_BYTES, Marker, markers, meaning};
use super::{OutputParser, ReplyParser, State};
use crate::dialect::{CallBody, Dialect, MessageKind, MessageSyntax, Tags};
use crate::event::ProcessorEvent;
use crate::parser::ParserOptions;
use crate::parsers::marker_scan::{Scan, scan};
use crate::parsers::text_buffer::TextBuffer;
use crate::parsers::tools::Tools;

/// Parser of a reply whose dialect has a [`MessageSyntax`].
///
/// A message is passed to the dialect's parser in the family's own form: reasoning between the channel's
/// markers, a call after its opening marker. The order of a header's parts therefore does not matter.
#[derive(Debug)]
pub(crate) struct MessageParser {
    dialect: &'static Dialect,
    syntax: &'static MessageSyntax,
    tools: Tools,
    inner: ReplyParser,
    buffer: TextBuffer,
    /// Number of bytes at the start of the buffer that the prompt wrote.
    of_prompt: usize,
    position: Position,
    ended: bool,
}

/// Position in the reply of the buffer's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Before a header, or before text without one.
    Start,
    /// In the text of a message.
    Text(MessageKind),
    /// In text outside of messages, where the dialect's own markers are read.
    Outside,
}

impl Position {
    /// Returns true if the text goes to the dialect's parser, and false if it is the answer verbatim.
    fn has_markers(self) -> bool {
        self != Self::Text(MessageKind::Answer)
    }
}

enum Step {
    NeedText,
    Continue,
}

impl MessageParser {
    pub(crate) fn new(
        dialect: &'static Dialect,
        syntax: &'static MessageSyntax,
        options: &ParserOptions,
    ) -> Self {
        // The prompt's tail is handled here: the inner parser always starts in the answer.
        let tail = options.prompt_tail.clone().unwrap_or_default();
        let options = ParserOptions { prompt_tail: Some("".into()), ..options.clone() };
        let inner = ReplyParser::new(dialect, &options).in_messages();
        let mut buffer = TextBuffer::default();
        if let Some(start) = tail.rfind(syntax.start).filter(|_| !syntax.start.is_empty()) {
            // The text of a message that the prompt began is not part of the reply.
            let header = &tail[start + syntax.start.len()..];
            buffer.push(header.find(syntax.text).map_or(header, |end| &header[..end + syntax.text.len()]));
        }
        let of_prompt = buffer.rest().len();
        let position = Position::Start;
        Self {
            dialect,
            syntax,
            tools: Tools::new(options.tools),
            inner,
            buffer,
            of_prompt,
            position,
            ended: false,
        }
    }

    fn advance(&mut self, events: &mut Vec<ProcessorEvent>) -> Step {
        match self.position {
            Position::Start => self.advance_start(events),
            Position::Text(_) | Position::Outside => self.advance_text(events),
        }
    }

    fn advance_start(&mut self, events: &mut Vec<ProcessorEvent>) -> Step {
        let start = self.syntax.start;
        let rest = self.buffer.rest();
        let text = rest.trim_start();
        let layout = rest.len() - text.len();
        if layout <= MAX_HEADER_BYTES && !start.is_empty() && text.starts_with(start) {
            self.buffer.take(layout + start.len());
            self.of_prompt = 0;
            return Step::Continue;
        }
        match Header::at(text, self.syntax, self.ended) {
            _ if layout > MAX_HEADER_BYTES => self.leave_messages(),
            Header::Complete(end) => {
                let header = text[..end].to_owned();
                self.buffer.take(layout + end + self.syntax.text.len());
                self.of_prompt = 0;
                self.message_begins(&header, events);
            }
            Header::Open => return Step::NeedText,
            Header::Absent(0) => self.leave_messages(),
            Header::Absent(marker) => {
                // Its first marker becomes text; otherwise it would be found again.
                let of_prompt = std::mem::take(&mut self.of_prompt);
                let text = &self.buffer.take((layout + marker).max(of_prompt))[of_prompt..];
                self.inner.begin_answer(events);
                self.inner.push_answer(text, events);
                self.leave_messages();
            }
        }
        Step::Continue
    }

    /// Continues outside of messages; the prompt's part of a header is not text of the reply.
    fn leave_messages(&mut self) {
        self.buffer.take(std::mem::take(&mut self.of_prompt));
        self.position = Position::Outside;
    }

    fn message_begins(&mut self, header: &str, events: &mut Vec<ProcessorEvent>) {
        let (meaning, recipient) = meaning(header, self.syntax, &self.tools);
        self.position = Position::Text(meaning);
        match (meaning, self.dialect.calls.first().map(|calls| (calls.call.open, &calls.body))) {
            (MessageKind::Reasoning, _) => self.channel_marker(|tags| tags.open, events),
            (MessageKind::Call, Some((open, CallBody::Named(call)))) => {
                let name = recipient.strip_prefix(self.syntax.tool_prefix).unwrap_or(&recipient);
                events.extend(self.inner.push(&format!("{open}{name}{}", call.after_name)));
            }
            (MessageKind::Call, _) => {}
            (MessageKind::Answer, _) => self.inner.begin_answer(events),
        }
    }

    fn channel_marker(&mut self, marker: fn(&Tags) -> &'static str, events: &mut Vec<ProcessorEvent>) {
        if let Some(syntax) = self.dialect.channels.first() {
            events.extend(self.inner.push(marker(&syntax.tags)));
        }
    }

    fn advance_text(&mut self, events: &mut Vec<ProcessorEvent>) -> Step {
        let MessageSyntax { start, channel, .. } = *self.syntax;
        let markers = markers(self.syntax, [(Marker::Start, start), (Marker::Start, channel)]);
        let (until, found) = match scan(self.buffer.rest(), &markers, self.ended) {
            Scan::Clear { until } => (until, None),
            Scan::Found { marker, start, len } => (start, Some((marker, len))),
        };
        let text = self.buffer.take(until);
        if self.position.has_markers() {
            events.extend(self.inner.push(text));
        } else {
            self.inner.push_answer(text, events);
        }
        let Some((marker, len)) = found else { return Step::NeedText };
        // The start of a header is read with the header.
        if marker == Marker::End {
            self.buffer.take(len);
        }
        self.message_ends(events);
        Step::Continue
    }

    fn message_ends(&mut self, events: &mut Vec<ProcessorEvent>) {
        self.inner.end_calls(events);
        match std::mem::replace(&mut self.position, Position::Start) {
            Position::Text(MessageKind::Reasoning) => self.channel_marker(|tags| tags.close, events),
            Position::Text(MessageKind::Answer) => self.inner.end_answer(events),
            Position::Text(MessageKind::Call) | Position::Start | Position::Outside => {}
        }
    }
}

impl ReplyParser {
    /// Starts the answer's text, in which markers have no meaning.
    fn begin_answer(&mut self, events: &mut Vec<ProcessorEvent>) {
        let held = self.buffer.rest().len();
        self.answer.push(self.buffer.take(held), events);
    }

    fn push_answer(&mut self, text: &str, events: &mut Vec<ProcessorEvent>) {
        self.answer.push(text, events);
    }

    /// Ends the answer's text, which may start again.
    fn end_answer(&mut self, events: &mut Vec<ProcessorEvent>) {
        self.answer.end(events);
        self.answer.restart();
    }

    /// Ends calls left open at the end of a message, as at the end of a reply.
    fn end_calls(&mut self, events: &mut Vec<ProcessorEvent>) {
        if let State::SelectSyntax(_) | State::Section(_) | State::Body(_) | State::Malformed(_) = self.state
        {
            self.ended = true;
            events.extend(self.advance_all());
            self.ended = false;
        }
    }
}

impl OutputParser for MessageParser {
    fn push(&mut self, delta: &str) -> Vec<ProcessorEvent> {
        self.buffer.push(delta);
        let mut events = Vec::new();
        while matches!(self.advance(&mut events), Step::Continue) {}
        events
    }

    fn finish(&mut self) -> Vec<ProcessorEvent> {
        self.ended = true;
        let mut events = self.push("");
        events.extend(self.inner.finish());
        events
    }
}

#[cfg(test)]
mod tests {
    use crate::{CallFault, ParserOptions, ProcessorEvent, ReadCalls, by_name};

    /// An unterminated string in a call's message does not swallow the next message.
    #[test]
    fn call_ends_with_its_message() {
        let reply = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": \"<|end|>\
                     <|start|>assistant<|channel|>final<|message|>Done.<|return|>";
        let options = ParserOptions { calls: ReadCalls::Always, ..ParserOptions::default() };
        for cut in 0..reply.len() {
            let mut parser = by_name("gpt_oss").expect("a family").parser(&options);
            let mut events = parser.push(&reply[..cut]);
            events.extend(parser.push(&reply[cut..]));
            events.extend(parser.finish());
            let faults = events.iter().filter(|event| {
                matches!(event, ProcessorEvent::Malformed { fault: CallFault::Unfinished, .. })
            });
            let answer = events.iter().filter_map(|event| match event {
                ProcessorEvent::Text(text) => Some(text.as_str()),
                _ => None,
            });
            assert_eq!(
                (faults.count(), answer.collect::<String>().as_str()),
                (1, "Done."),
                "cut at {cut}: {events:?}"
            );
        }
    }

    /// Text longer than a header is not a header, whether it arrives at once or in pieces.
    #[test]
    fn header_length_is_bounded() {
        let options = ParserOptions { calls: ReadCalls::Always, ..ParserOptions::default() };
        for len in 1000..1030 {
            let reply =
                format!("<|channel|>commentary to=functions.f{}<|message|>{{}}<|call|>", "x".repeat(len));
            let read = |pieces: &mut dyn Iterator<Item = &str>| {
                let mut parser = by_name("gpt_oss").expect("a family").parser(&options);
                let mut events: Vec<_> = pieces.flat_map(|piece| parser.push(piece)).collect();
                events.extend(parser.finish());
                let said = |event: &ProcessorEvent| match event {
                    ProcessorEvent::Text(text) => text.clone(),
                    event => format!("{event:?}"),
                };
                events.iter().map(said).collect::<String>()
            };
            let whole = read(&mut std::iter::once(&reply[..]));
            assert_eq!(read(&mut reply.split_inclusive(|_| true)), whole, "{len} more characters");
        }
    }
}
