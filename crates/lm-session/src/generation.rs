//! Iterator over the events of a generation.

use crate::{Error, Finished, Result, Session, SessionEvent};

/// Iterator over the events of one [`Session::generate`], as they come.
///
/// The last item is [`SessionEvent::Finished`] or an error. Dropping the iterator before that cancels the generation: the
/// session keeps the tokens that were read.
#[derive(Debug)]
#[must_use = "a generation that is dropped is cancelled"]
pub struct Generation<'a> {
    session: &'a mut Session,
    /// The error with which the start failed.
    failed: Option<Error>,
}

impl<'a> Generation<'a> {
    pub(crate) fn new(session: &'a mut Session, failed: Option<Error>) -> Self {
        Self { session, failed }
    }

    /// Reads all events and returns the whole text.
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
        self.failed.take().map(Err).or_else(|| self.session.next_event())
    }
}

impl std::iter::FusedIterator for Generation<'_> {}

impl Drop for Generation<'_> {
    fn drop(&mut self) {
        self.session.abort();
    }
}
