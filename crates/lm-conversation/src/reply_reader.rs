//! Reader of a reply: from pieces of text to events and a message.

use std::ops::Range;

use lm_processors::{
    FreshCallIds, MessageBuilder, OutputParser, ParserOptions, Processor, ProcessorEvent, REASONING,
};
use lm_session::SessionEvent;
use lm_template::Message;

use crate::call_filter::{CallFilter, CutCall};
use crate::config::CutCalls;
use crate::error::Result;
use crate::event::ConversationEvent;

/// Text that a token made final.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) text: String,
    /// Byte ranges of added tokens in it.
    pub(crate) added: Vec<Range<usize>>,
    /// True if steering replaced this token or an earlier one.
    pub(crate) steered: bool,
}

impl Piece {
    /// Text of a token event.
    pub(crate) fn of(event: SessionEvent) -> Option<Self> {
        match event {
            SessionEvent::Token { text, added, steered, .. } => Some(Self { text, added, steered }),
            _ => None,
        }
    }
}

/// Parser of a reply, and builder of its message.
pub(crate) struct ReplyReader {
    processor: Processor,
    options: ParserOptions,
    cut_calls: CutCalls,
    /// Call-id generator in its state before the reply.
    first_ids: FreshCallIds,
    call_ids: FreshCallIds,
    parser: Box<dyn OutputParser>,
    builder: MessageBuilder,
    filter: CallFilter,
    /// True from the first steered piece on.
    steered: bool,
    /// True if a call has started.
    has_call: bool,
    /// Pieces since the last event.
    unread: usize,
    /// Pieces of reasoning.
    reasoning_tokens: usize,
    /// Text of all pieces.
    raw: String,
}

impl ReplyReader {
    pub(crate) fn new(
        processor: Processor,
        options: ParserOptions,
        cut_calls: CutCalls,
        first_ids: FreshCallIds,
    ) -> Self {
        let (parser, builder) = (processor.parser(&options), MessageBuilder::new(&options));
        let call_ids = first_ids.clone();
        Self {
            processor,
            options,
            cut_calls,
            first_ids,
            call_ids,
            parser,
            builder,
            filter: CallFilter::new(cut_calls),
            steered: false,
            has_call: false,
            unread: 0,
            reasoning_tokens: 0,
            raw: String::new(),
        }
    }

    /// Takes the text of all pieces.
    pub(crate) fn take_raw(&mut self) -> String {
        std::mem::take(&mut self.raw)
    }

    /// Number of tokens of reasoning, with the marker before it.
    pub(crate) fn reasoning_tokens(&self) -> usize {
        self.reasoning_tokens
    }

    /// Returns true if a call has started.
    pub(crate) fn has_call(&self) -> bool {
        self.has_call
    }

    /// The call that the token limit cut off.
    pub(crate) fn cut_call(&self) -> Option<&CutCall> {
        self.filter.cut()
    }

    /// Returns true if the model has repeated a call: the reply ends before it.
    pub(crate) fn is_repeated(&self) -> bool {
        self.filter.is_repeated()
    }

    /// Creates a reader of the same reply from its beginning.
    pub(crate) fn restarted(&self) -> Self {
        Self::new(self.processor.clone(), self.options.clone(), self.cut_calls, self.first_ids.clone())
    }

    /// Reads the next piece, and appends its events to `events`.
    pub(crate) fn push(&mut self, piece: &Piece, events: &mut Vec<ConversationEvent>) -> Result<()> {
        self.raw += &piece.text;
        let known = events.len();
        self.steered |= piece.steered;
        let read = self.parse(piece, events);
        self.count(events.get(known));
        read
    }

    /// Counts a piece with its first event. Pieces whose text is held back are counted with the next event.
    fn count(&mut self, event: Option<&ConversationEvent>) {
        self.unread += 1;
        match event {
            Some(ConversationEvent::Reasoning(_)) => {
                self.reasoning_tokens += std::mem::take(&mut self.unread)
            }
            Some(_) => self.unread = 0,
            None => {}
        }
    }

    fn parse(&mut self, piece: &Piece, events: &mut Vec<ConversationEvent>) -> Result<()> {
        let mut at = 0;
        for token in &piece.added {
            let read = self.parser.push(&piece.text[at..token.start]);
            self.take(read, events)?;
            let read = self.parser.push_token(&piece.text[token.clone()]);
            self.take(read, events)?;
            at = token.end;
        }
        let read = self.parser.push(&piece.text[at..]);
        self.take(read, events)
    }

    /// Reads the end of the reply; the reader must not be used again.
    pub(crate) fn finish(&mut self, events: &mut Vec<ConversationEvent>) -> Result<Message> {
        let read = self.parser.finish();
        self.take(read, events)?;
        self.filter.finish(self.steered);
        Ok(std::mem::take(&mut self.builder).finish())
    }

    fn take(&mut self, read: Vec<ProcessorEvent>, events: &mut Vec<ConversationEvent>) -> Result<()> {
        for mut event in read {
            self.has_call |= !matches!(event, ProcessorEvent::Text(_) | ProcessorEvent::Channel { .. });
            if let ProcessorEvent::ToolCall { call, .. } = &mut event {
                call.id.get_or_insert_with(|| self.call_ids.next_id());
            }
            for event in self.filter.push(event, self.steered) {
                let converted = conversation_event(&event);
                self.builder.push(event)?;
                events.extend(converted);
            }
        }
        Ok(())
    }
}

/// Converts to the caller's event. A malformed call is already an error, unless it is requested as text.
fn conversation_event(event: &ProcessorEvent) -> Option<ConversationEvent> {
    match event.clone() {
        ProcessorEvent::Text(text) => Some(ConversationEvent::Text(text)),
        ProcessorEvent::Channel { name, text } if name == REASONING => {
            Some(ConversationEvent::Reasoning(text))
        }
        ProcessorEvent::Channel { name, text } => Some(ConversationEvent::Channel { name, text }),
        ProcessorEvent::ToolCallStarted { index, name, id } => {
            Some(ConversationEvent::ToolCallStarted { index, name, id })
        }
        ProcessorEvent::ToolCallArguments { index, fragment } => {
            Some(ConversationEvent::ToolCallArguments { index, fragment })
        }
        ProcessorEvent::Malformed { text, .. } => Some(ConversationEvent::Text(text)),
        ProcessorEvent::ToolCall { call, .. } => Some(ConversationEvent::ToolCall(call)),
        _ => None,
    }
}
