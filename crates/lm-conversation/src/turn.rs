//! Running turn: from the session's tokens to events.

use std::collections::VecDeque;

use lm_processors::Relaxed;
use lm_session::{FinishReason, Finished, Session, SessionEvent};
use lm_template::{Message, Polyfill};

use crate::error::{Error, Result};
use crate::event::{ConversationEvent, Reply, ScoredToken};
use crate::reply_reader::{Piece, ReplyReader};
use crate::resampling::Resampling;

/// State of a turn, besides the session that generates its reply.
pub(crate) struct Turn {
    /// Messages sent.
    pub(crate) messages: Vec<Message>,
    reader: ReplyReader,
    ready: VecDeque<ConversationEvent>,
    /// Rejection sampling, if the constraint leaves keywords to validate.
    resampling: Option<Resampling>,
    relaxed: Vec<Relaxed>,
    polyfills: Vec<Polyfill>,
    /// Error that ended the turn, returned after the ready events.
    failed: Option<Error>,
}

impl Turn {
    pub(crate) fn new(messages: Vec<Message>, reader: ReplyReader) -> Self {
        let (relaxed, polyfills) = (Vec::new(), Vec::new());
        Self { messages, reader, ready: VecDeque::new(), resampling: None, relaxed, polyfills, failed: None }
    }

    /// Sets the rejection sampling and the keywords that the constraint does not enforce.
    pub(crate) fn checked(self, resampling: Option<Resampling>, relaxed: Vec<Relaxed>) -> Self {
        Self { resampling, relaxed, ..self }
    }

    /// Sets the changes made to the conversation for its prompt.
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
            SessionEvent::Token { id, text, added, logprobs } => {
                let tokenizer = session.engine().tokenizer();
                let scored = logprobs.filter(|_| !tokenizer.end_ids().contains(&id));
                let scored = scored.map(|logprobs| ScoredToken::new(id, &logprobs, tokenizer));
                self.read(Piece { text, added }, scored, session)
            }
            SessionEvent::Finished(finished) => self.finish(finished, session),
        }
    }

    fn read(&mut self, piece: Piece, scored: Option<ScoredToken>, session: &mut Session) -> Result<()> {
        let mut events: Vec<_> = scored.map(ConversationEvent::Logprobs).into_iter().collect();
        let read = self.reader.push(&piece, &mut events);
        let Some(resampling) = &mut self.resampling else {
            self.ready.extend(events);
            return read;
        };
        read?;
        match resampling.push(piece, events) {
            Ok(events) => self.ready.extend(events),
            Err(invalid) => self.reader = resampling.resample(session, &self.reader, invalid)?,
        }
        Ok(())
    }

    fn finish(&mut self, mut finish: Finished, session: &mut Session) -> Result<()> {
        if finish.reason == FinishReason::Cancelled {
            return Err(Error::Cancelled);
        }
        let mut events = Vec::new();
        let message = self.reader.finish(&mut events)?;
        let mut resampled = 0;
        if let Some(resampling) = &mut self.resampling {
            resampled = resampling.rejected();
            resampling.correct(&mut finish);
            events = match resampling.finish(events, &message) {
                Ok(events) => events,
                Err(invalid) => {
                    self.reader = resampling.resample(session, &self.reader, invalid)?;
                    return Ok(());
                }
            };
        }
        self.ready.extend(events);
        let (relaxed, polyfills) = (std::mem::take(&mut self.relaxed), std::mem::take(&mut self.polyfills));
        let reply = Reply { message, finish, relaxed, resampled, polyfills };
        self.ready.push_back(ConversationEvent::Finished(reply));
        Ok(())
    }
}
