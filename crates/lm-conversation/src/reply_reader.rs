//! Reader of a reply: from pieces of text to events and a message.

use std::ops::Range;

use lm_processors::{
    FreshCallIds, MessageBuilder, ModelDataProcessor, OutputParser, ParserOptions, ProcessorEvent, REASONING,
};
use lm_session::SessionEvent;
use lm_template::Message;

use crate::error::Result;
use crate::event::ConversationEvent;

/// Text that a token made final.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) text: String,
    /// Byte ranges of added tokens in it.
    pub(crate) added: Vec<Range<usize>>,
}

impl Piece {
    /// Text of a token event.
    pub(crate) fn of(event: SessionEvent) -> Option<Self> {
        match event {
            SessionEvent::Token { text, added, .. } => Some(Self { text, added }),
            _ => None,
        }
    }
}

/// Parser of a reply, and builder of its message.
pub(crate) struct ReplyReader {
    processor: &'static dyn ModelDataProcessor,
    options: ParserOptions,
    /// Call-id generator in its state before the reply.
    first_ids: FreshCallIds,
    call_ids: FreshCallIds,
    parser: Box<dyn OutputParser>,
    builder: MessageBuilder,
    /// True if a call has started.
    has_call: bool,
    /// Pieces since the last event.
    unread: usize,
    /// Pieces of reasoning.
    reasoning_tokens: usize,
}

impl ReplyReader {
    pub(crate) fn new(
        processor: &'static dyn ModelDataProcessor,
        options: ParserOptions,
        first_ids: FreshCallIds,
    ) -> Self {
        let (parser, builder) = (processor.parser(&options), MessageBuilder::new(&options));
        let call_ids = first_ids.clone();
        Self {
            processor,
            options,
            first_ids,
            call_ids,
            parser,
            builder,
            has_call: false,
            unread: 0,
            reasoning_tokens: 0,
        }
    }

    /// Number of tokens of reasoning, with the marker before it.
    pub(crate) fn reasoning_tokens(&self) -> usize {
        self.reasoning_tokens
    }

    /// Returns true if a call has started.
    pub(crate) fn has_call(&self) -> bool {
        self.has_call
    }

    /// Creates a reader of the same reply from its beginning.
    pub(crate) fn restarted(&self) -> Self {
        Self::new(self.processor, self.options.clone(), self.first_ids.clone())
    }

    /// Reads the next piece, and appends its events to `events`.
    pub(crate) fn push(&mut self, piece: &Piece, events: &mut Vec<ConversationEvent>) -> Result<()> {
        let known = events.len();
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
        Ok(std::mem::take(&mut self.builder).finish())
    }

    fn take(&mut self, read: Vec<ProcessorEvent>, events: &mut Vec<ConversationEvent>) -> Result<()> {
        for mut event in read {
            self.has_call |= !matches!(event, ProcessorEvent::Text(_) | ProcessorEvent::Channel { .. });
            if let ProcessorEvent::ToolCall { call, .. } = &mut event {
                call.id.get_or_insert_with(|| self.call_ids.next_id());
            }
            let converted = conversation_event(&event);
            self.builder.push(event)?;
            events.extend(converted);
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
