//! One turn, as it is written.

use std::collections::VecDeque;
use std::iter::FusedIterator;

use lm_processors::{MessageBuilder, OutputParser, ProcessorEvent};
use lm_session::{FinishReason, Finished, Generation, SessionEvent};
use lm_template::Message;

use crate::call_ids::CallIds;
use crate::error::{Error, Result};
use crate::event::{ConversationEvent, Reply};

/// What a running turn holds of its conversation.
pub(crate) struct Turn<'a> {
    pub(crate) generation: Generation<'a>,
    pub(crate) parser: Box<dyn OutputParser>,
    /// What was sent.
    pub(crate) messages: Vec<Message>,
    pub(crate) history: &'a mut Vec<Message>,
    pub(crate) was_cancelled: &'a mut bool,
    pub(crate) call_ids: CallIds,
}

/// The events of one turn, as they come.
///
/// The last item is [`ConversationEvent::Finished`] or an error. Dropping it before that cancels the turn, and the
/// conversation is as before.
#[must_use = "a stream that is dropped is cancelled"]
pub struct Stream<'a> {
    /// None when the turn is over.
    turn: Option<Turn<'a>>,
    builder: MessageBuilder,
    ready: VecDeque<ConversationEvent>,
    /// What ended the turn, to be told after what is ready.
    failed: Option<Error>,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(turn: Turn<'a>) -> Self {
        Self { turn: Some(turn), builder: MessageBuilder::default(), ready: VecDeque::new(), failed: None }
    }

    /// Waits for the engine until there is an event or the turn is over.
    fn advance(&mut self) -> Result<()> {
        while self.ready.is_empty() {
            let Some(turn) = &mut self.turn else { return Ok(()) };
            match turn.generation.next() {
                Some(Ok(SessionEvent::Token { text, .. })) => {
                    let events = turn.parser.push(&text);
                    self.take(events)?;
                }
                Some(Ok(SessionEvent::Finished(finished))) => return self.finish(finished),
                Some(Err(error)) => return Err(error.into()),
                None => return Err(Error::Session(lm_session::Error::EngineStopped)),
            }
        }
        Ok(())
    }

    fn take(&mut self, events: Vec<ProcessorEvent>) -> Result<()> {
        for mut event in events {
            if let (ProcessorEvent::ToolCall { call, .. }, Some(turn)) = (&mut event, &mut self.turn) {
                call.id.get_or_insert_with(|| turn.call_ids.next());
            }
            self.ready.extend(conversation_event(&event));
            self.builder.push(event)?;
        }
        Ok(())
    }

    /// The reply has ended: the turn enters the history, unless it was cancelled.
    fn finish(&mut self, finish: Finished) -> Result<()> {
        let Some(turn) = &mut self.turn else { return Ok(()) };
        if finish.reason == FinishReason::Cancelled {
            *turn.was_cancelled = true;
            return Err(Error::Cancelled);
        }
        let events = turn.parser.finish();
        self.take(events)?;
        let message = std::mem::take(&mut self.builder).finish();
        if let Some(turn) = self.turn.take() {
            turn.history.extend(turn.messages);
            turn.history.push(message.clone());
        }
        self.ready.push_back(ConversationEvent::Finished(Reply { message, finish }));
        Ok(())
    }
}

/// The event for the caller; a malformed call is an error instead.
fn conversation_event(event: &ProcessorEvent) -> Option<ConversationEvent> {
    match event.clone() {
        ProcessorEvent::Text(text) => Some(ConversationEvent::Text(text)),
        ProcessorEvent::Channel { text, .. } => Some(ConversationEvent::Reasoning(text)),
        ProcessorEvent::ToolCallStarted { index, name } => {
            Some(ConversationEvent::ToolCallStarted { index, name })
        }
        ProcessorEvent::ToolCallArguments { index, fragment } => {
            Some(ConversationEvent::ToolCallArguments { index, fragment })
        }
        ProcessorEvent::ToolCall { call, .. } => Some(ConversationEvent::ToolCall(call)),
        _ => None,
    }
}

impl Iterator for Stream<'_> {
    type Item = Result<ConversationEvent>;

    /// Waits for the next event.
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed.is_none()
            && let Err(error) = self.advance()
        {
            self.turn = None;
            self.failed = Some(error);
        }
        self.ready.pop_front().map(Ok).or_else(|| self.failed.take().map(Err))
    }
}

impl FusedIterator for Stream<'_> {}

impl std::fmt::Debug for Stream<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("ready", &self.ready).finish_non_exhaustive()
    }
}
