//! Events of a generation: as an iterator, as a whole, and as a stream for async tasks.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::cancel::CancelHandle;
use crate::error::{Error, Result};
use crate::event::{FinishReason, Finished, SessionEvent};
use crate::generate::PromptOutput;
use crate::panics::caught_waker;
use crate::record::Recording;
use crate::scheduler::Reply;
use crate::session::token_log::TokenLog;

/// Events of one [`crate::Session::generate`] or [`crate::Session::submit`], in order.
///
/// It can be read on another thread than the session's. The last item is [`SessionEvent::Finished`] or an
/// error. Dropping the generation before that cancels it: the session keeps the tokens that were read. So
/// does every call that changes the session's tokens; the generation then ends with
/// [`crate::FinishReason::Cancelled`].
#[derive(Debug)]
#[must_use = "a generation that is dropped is cancelled"]
pub struct Generation {
    /// `None` after the last event.
    replies: Option<Pin<Box<async_channel::Receiver<Reply>>>>,
    tokens: TokenLog,
    /// Number of tokens that arrived after another call changed the session's tokens; they are dropped.
    superseded: usize,
    cancel: CancelHandle,
    continued: Vec<SessionEvent>,
    recording: Option<Recording>,
    /// Error of the failed start.
    failed: Option<Error>,
}

impl Generation {
    pub(crate) fn new(
        replies: async_channel::Receiver<Reply>,
        tokens: TokenLog,
        cancel: CancelHandle,
        continued: Vec<SessionEvent>,
        recording: Option<Recording>,
    ) -> Self {
        let replies = Some(Box::pin(replies));
        Self { replies, tokens, superseded: 0, cancel, continued, recording, failed: None }
    }

    /// A generation that failed to start.
    pub(crate) fn failed(tokens: TokenLog, error: Error) -> Self {
        let (cancel, continued) = (CancelHandle::new(), Vec::new());
        let failed = Some(error);
        Self { replies: None, tokens, superseded: 0, cancel, continued, recording: None, failed }
    }

    /// Takes the token events of the start of the output, [`crate::GenerateParams::continued`], which are not
    /// among the others: as the original generation sent them, without log probabilities and without the text
    /// that a limit made final.
    pub fn take_continued(&mut self) -> Vec<SessionEvent> {
        std::mem::take(&mut self.continued)
    }

    /// Returns the handle that cancels this generation alone.
    pub fn canceller(&self) -> CancelHandle {
        self.cancel.clone()
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
                SessionEvent::Prefill(_) | SessionEvent::PromptLogprobs(_) => {}
                SessionEvent::Finished(finished) => return Ok((whole, finished)),
            }
        }
    }

    /// Converts the iterator to a stream for async tasks. It needs no runtime.
    pub fn into_stream(self) -> GenerationStream {
        GenerationStream { generation: self }
    }

    /// Converts a reply to the next item; `None` skips it.
    fn accept(&mut self, reply: Option<Reply>) -> Option<Result<SessionEvent>> {
        match reply {
            Some(Reply::Event(SessionEvent::Token { id, text, added, logprobs, steered })) => {
                let current = self.tokens.push(id);
                self.superseded += usize::from(!current);
                if let (true, Some(recording)) = (current, &mut self.recording) {
                    recording.token(id);
                }
                current.then_some(Ok(SessionEvent::Token { id, text, added, logprobs, steered }))
            }
            Some(Reply::Prompt(PromptOutput::Logprobs(logprobs))) => {
                Some(Ok(SessionEvent::PromptLogprobs(logprobs)))
            }
            // Not of a generation.
            Some(Reply::Prompt(PromptOutput::Vector(_) | PromptOutput::Logits(_))) => None,
            Some(Reply::Event(SessionEvent::Finished(mut finished))) => {
                self.replies = None;
                if self.superseded > 0 {
                    // The engine had finished it before the other call; its last tokens were unread.
                    finished.reason = FinishReason::Cancelled;
                    finished.usage.output_tokens =
                        finished.usage.output_tokens.saturating_sub(self.superseded);
                }
                let recorded = self.recording.as_mut().map(|recording| recording.finish(&finished));
                Some(recorded.unwrap_or(Ok(())).map(|()| SessionEvent::Finished(finished)))
            }
            Some(Reply::Event(event)) => Some(Ok(event)),
            Some(Reply::Failed { error, .. }) => {
                self.replies = None;
                let recorded = self.recording.as_mut().map(|recording| recording.fail(&error));
                Some(Err(recorded.and_then(Result::err).unwrap_or(error)))
            }
            Some(Reply::Prefilled { .. }) | None => {
                self.replies = None;
                Some(Err(Error::EngineStopped))
            }
        }
    }
}

impl Iterator for Generation {
    type Item = Result<SessionEvent>;

    /// Waits for the next event.
    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.failed.take() {
            return Some(Err(error));
        }
        loop {
            let reply = self.replies.as_ref()?.recv_blocking().ok();
            if let Some(item) = self.accept(reply) {
                return Some(item);
            }
        }
    }
}

impl std::iter::FusedIterator for Generation {}

impl Drop for Generation {
    fn drop(&mut self) {
        if self.replies.is_some() {
            self.cancel.cancel();
            self.tokens.abandon();
        }
    }
}

/// A [`Generation`] as a [`Stream`], for async tasks; see [`Generation::into_stream`].
///
/// ```
/// use futures_util::StreamExt;
/// use lm_session::{GenerateParams, SessionConfig, SessionEvent, testing};
///
/// # futures_executor::block_on(async {
/// let engine = testing::scripted_engine(["Hello!"]);
/// let mut session = engine.session(SessionConfig::default())?;
/// let prompt = engine.tokenizer().encode("Say hello.")?;
/// let mut events = session.submit(&prompt, GenerateParams::default())?.into_stream();
/// let mut text = String::new();
/// while let Some(event) = events.next().await {
///     if let SessionEvent::Token { text: piece, .. } = event? {
///         text += &piece;
///     }
/// }
/// assert_eq!(text, "Hello!");
/// # Ok::<(), lm_session::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a generation that is dropped is cancelled"]
pub struct GenerationStream {
    generation: Generation,
}

impl GenerationStream {
    /// Returns the handle that cancels this generation alone.
    pub fn canceller(&self) -> CancelHandle {
        self.generation.canceller()
    }
}

impl Stream for GenerationStream {
    type Item = Result<SessionEvent>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let generation = &mut self.generation;
        if let Some(error) = generation.failed.take() {
            return Poll::Ready(Some(Err(error)));
        }
        // The engine's thread calls it.
        let waker = caught_waker(context.waker());
        let mut context = Context::from_waker(&waker);
        loop {
            let Some(replies) = &mut generation.replies else { return Poll::Ready(None) };
            let Poll::Ready(reply) = replies.as_mut().poll_next(&mut context) else { return Poll::Pending };
            if let Some(item) = generation.accept(reply) {
                return Poll::Ready(Some(item));
            }
        }
    }
}
