//! Reading a generation.

use std::sync::mpsc::Receiver;

use crate::request::Reply;
use crate::{Error, Finished, Result, Session, SessionEvent};

/// The events of one [`Session::generate`], as they come.
///
/// The last item is [`SessionEvent::Finished`] or an error. Dropping it before that cancels the generation: the
/// session keeps the tokens that were read.
#[derive(Debug)]
#[must_use = "a generation that is dropped is cancelled"]
pub struct Generation<'a> {
    session: &'a mut Session,
    state: State,
}

#[derive(Debug)]
enum State {
    Running(Receiver<Reply>),
    NotStarted(Error),
    Ended,
}

impl<'a> Generation<'a> {
    pub(crate) fn new(session: &'a mut Session, replies: Result<Receiver<Reply>>) -> Self {
        let state = replies.map_or_else(State::NotStarted, State::Running);
        Self { session, state }
    }

    /// Reads to the end and returns the whole text.
    ///
    /// # Errors
    /// The generation's error.
    pub fn into_text(mut self) -> Result<(String, Finished)> {
        let mut whole = String::new();
        loop {
            match self.next().ok_or(Error::EngineStopped)?? {
                SessionEvent::Token { text, .. } => whole += &text,
                SessionEvent::Finished(finished) => return Ok((whole, finished)),
            }
        }
    }
}

impl Iterator for Generation<'_> {
    type Item = Result<SessionEvent>;

    /// Waits for the next event.
    fn next(&mut self) -> Option<Self::Item> {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Ended => None,
            State::NotStarted(error) => Some(Err(error)),
            State::Running(replies) => match replies.recv() {
                Ok(Reply::Event(SessionEvent::Token { id, text })) => {
                    self.session.push(id);
                    self.state = State::Running(replies);
                    Some(Ok(SessionEvent::Token { id, text }))
                }
                Ok(Reply::Event(finished)) => Some(Ok(finished)),
                Ok(Reply::Failed { error, .. }) => Some(Err(error)),
                Ok(Reply::Prefilled { .. }) | Err(_) => Some(Err(Error::EngineStopped)),
            },
        }
    }
}

impl std::iter::FusedIterator for Generation<'_> {}

impl Drop for Generation<'_> {
    fn drop(&mut self) {
        if matches!(self.state, State::Running(_)) {
            self.session.rewind(usize::MAX);
        }
    }
}
