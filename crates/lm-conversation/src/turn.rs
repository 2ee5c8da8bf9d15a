//! The turn under way: from the session's tokens to events.

use std::collections::VecDeque;

use lm_processors::{
    FreshCallIds, MessageBuilder, ModelDataProcessor, OutputParser, ParserOptions, ProcessorEvent, Relaxed,
};
use lm_session::{FinishReason, Finished, Session, SessionEvent};
use lm_template::{Message, Polyfill};

use crate::answer_check::AnswerCheck;
use crate::error::{Error, Result};
use crate::event::{ConversationEvent, Reply};

/// What a turn knows beside the session that generates its reply.
pub(crate) struct Turn {
    /// What was sent.
    pub(crate) messages: Vec<Message>,
    parser: Box<dyn OutputParser>,
    call_ids: FreshCallIds,
    builder: MessageBuilder,
    ready: VecDeque<ConversationEvent>,
    answer: Option<AnswerCheck>,
    relaxed: Vec<Relaxed>,
    polyfills: Vec<Polyfill>,
    /// What ended the turn, to be told after what is ready.
    failed: Option<Error>,
}

impl Turn {
    pub(crate) fn new(
        messages: Vec<Message>,
        processor: &dyn ModelDataProcessor,
        options: &ParserOptions,
        call_ids: FreshCallIds,
    ) -> Self {
        let (parser, builder) = (processor.parser(options), MessageBuilder::new(options));
        let (ready, answer) = (VecDeque::new(), None);
        let (relaxed, polyfills) = (Vec::new(), Vec::new());
        Self { messages, parser, call_ids, builder, ready, answer, relaxed, polyfills, failed: None }
    }

    /// With what its answer is checked against, and what its constraint leaves open.
    pub(crate) fn checked(self, answer: Option<AnswerCheck>, relaxed: Vec<Relaxed>) -> Self {
        Self { answer, relaxed, ..self }
    }

    /// With what was changed in the conversation for its prompt.
    pub(crate) fn polyfilled(self, polyfills: Vec<Polyfill>) -> Self {
        Self { polyfills, ..self }
    }

    /// Waits for the engine until there is an event or an error; the turn is over after `Finished` or an error.
    pub(crate) fn next(&mut self, session: &mut Session) -> Result<ConversationEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            self.failed = self.advance(session).err();
        }
    }

    fn advance(&mut self, session: &mut Session) -> Result<()> {
        match session.next_event().unwrap_or(Err(lm_session::Error::EngineStopped))? {
            SessionEvent::Token { text, added, .. } => {
                let mut at = 0;
                for token in added {
                    let events = self.parser.push(&text[at..token.start]);
                    self.take(events)?;
                    let events = self.parser.push_token(&text[token.clone()]);
                    self.take(events)?;
                    at = token.end;
                }
                let events = self.parser.push(&text[at..]);
                self.take(events)
            }
            SessionEvent::Finished(finished) => self.finish(finished),
        }
    }

    fn take(&mut self, events: Vec<ProcessorEvent>) -> Result<()> {
        for mut event in events {
            if let ProcessorEvent::ToolCall { call, .. } = &mut event {
                call.id.get_or_insert_with(|| self.call_ids.next_id());
            }
            let told = conversation_event(&event);
            self.builder.push(event)?;
            self.ready.extend(told);
        }
        Ok(())
    }

    fn finish(&mut self, finish: Finished) -> Result<()> {
        if finish.reason == FinishReason::Cancelled {
            return Err(Error::Cancelled);
        }
        let events = self.parser.finish();
        self.take(events)?;
        let message = std::mem::take(&mut self.builder).finish();
        if let Some(answer) = self.answer.as_ref().filter(|_| message.tool_calls.is_empty()) {
            answer.check(&message.content.text())?;
        }
        let (relaxed, polyfills) = (std::mem::take(&mut self.relaxed), std::mem::take(&mut self.polyfills));
        self.ready.push_back(ConversationEvent::Finished(Reply { message, finish, relaxed, polyfills }));
        Ok(())
    }
}

/// The event for the caller. A malformed call is an error before it gets here, unless it is wanted as text.
fn conversation_event(event: &ProcessorEvent) -> Option<ConversationEvent> {
    match event.clone() {
        ProcessorEvent::Text(text) => Some(ConversationEvent::Text(text)),
        ProcessorEvent::Channel { text, .. } => Some(ConversationEvent::Reasoning(text)),
        ProcessorEvent::ToolCallStarted { index, name, .. } => {
            Some(ConversationEvent::ToolCallStarted { index, name })
        }
        ProcessorEvent::ToolCallArguments { index, fragment } => {
            Some(ConversationEvent::ToolCallArguments { index, fragment })
        }
        ProcessorEvent::Malformed { text, .. } => Some(ConversationEvent::Text(text)),
        ProcessorEvent::ToolCall { call, .. } => Some(ConversationEvent::ToolCall(call)),
        _ => None,
    }
}
