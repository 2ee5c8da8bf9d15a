//! Running requests.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::iter::FusedIterator;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::stream::{SelectAll, Stream, StreamExt};
use lm_conversation::{CancelHandle, ConversationEvent, TurnStream};
use serde_json::Value;

use crate::completions::TextStream;
use crate::continuation::Continuation;
use crate::error::{ApiError, Result};
use crate::request::ChatRequest;
use crate::response_writer::{Choice, Frame, ResponseWriter};

/// A request that runs, made by [`ChatEngine::start`](crate::ChatEngine::start). Its choices run
/// concurrently. Dropping it cancels the request.
///
/// It is awaited as one object ([`object`](Self::object)) or as a stream of frames
/// ([`into_stream`](Self::into_stream)), both without a runtime; [`wait`](Self::wait) and
/// [`frames`](Self::frames) block. `W` writes them.
#[derive(Debug)]
#[must_use = "a request that is dropped is cancelled"]
pub struct Running<W> {
    choices: RunningChoices,
    writer: W,
    messages_left_out: usize,
}

/// The choices of a request.
#[derive(Debug)]
struct RunningChoices {
    request: ChatRequest,
    /// Unfinished choices.
    turns: SelectAll<ChoiceTurn>,
    /// Cancels all choices.
    cancel: CancelHandle,
    observer: Option<Observer>,
}

/// Function that is called with each event of a request, or with the error that ends it.
type Observe = dyn FnMut(Result<&ConversationEvent, &ApiError>) + Send;

struct Observer(Box<Observe>);

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

/// Turn of one choice.
#[derive(Debug)]
struct ChoiceTurn {
    choice: usize,
    events: ChoiceEvents,
    continuation: Option<Continuation>,
}

/// Events of one choice.
#[derive(Debug)]
pub(crate) enum ChoiceEvents {
    /// Those of a conversation's turn.
    Turn(Box<TurnStream>),
    /// Those of a text without messages.
    Text(Box<TextStream>),
}

impl Stream for ChoiceTurn {
    type Item = (usize, lm_conversation::Result<ConversationEvent>);

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = ready!(match &mut self.events {
            ChoiceEvents::Turn(turn) => Pin::new(turn).poll_next(context),
            ChoiceEvents::Text(text) => Pin::new(text).poll_next(context),
        });
        let event = event.map(|event| {
            event.map(|mut event| {
                if let Some(continuation) = &mut self.continuation {
                    continuation.read(&mut event);
                }
                event
            })
        });
        Poll::Ready(event.map(|event| (self.choice, event)))
    }
}

impl RunningChoices {
    /// Polls for the next event of a choice. An error ends all of them.
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<(usize, ConversationEvent)>>> {
        let Some((choice, event)) = ready!(self.turns.poll_next_unpin(context)) else {
            return Poll::Ready(None);
        };
        if event.is_err() {
            self.turns.clear();
        }
        let event = event.map_err(|error| self.request.api_error(&error));
        if let Some(Observer(observe)) = &mut self.observer {
            observe(event.as_ref());
        }
        Poll::Ready(Some(event.map(|event| (choice, event))))
    }

    /// Waits for the replies.
    async fn finished(mut self) -> Result<Vec<Choice>> {
        let mut replies: Vec<_> = (0..self.request.choices).map(|_| None).collect();
        let mut scored = vec![Vec::new(); self.request.choices];
        let mut prompts = scored.clone();
        while let Some(event) = poll_fn(|context| self.poll_event(context)).await {
            match event? {
                (choice, ConversationEvent::Finished(reply)) => replies[choice] = Some(reply),
                (choice, ConversationEvent::Logprobs(token)) => scored[choice].push(token),
                (choice, ConversationEvent::PromptLogprobs(tokens)) => prompts[choice] = tokens,
                _ => {}
            }
        }
        let wants = self.request.turn.logprobs.is_some();
        let choice = |((reply, scored), prompt_logprobs): ((Option<_>, _), _)| {
            let reply = reply.ok_or_else(|| ApiError::server("a turn ended without a reply"))?;
            Ok(Choice { reply, logprobs: wants.then_some(scored), prompt_logprobs })
        };
        replies.into_iter().zip(scored).zip(prompts).map(choice).collect()
    }
}

impl<W: ResponseWriter> Running<W> {
    pub(crate) fn new(
        request: ChatRequest,
        writer: W,
        turns: Vec<ChoiceEvents>,
        cancel: CancelHandle,
    ) -> Self {
        let turns = turns.into_iter().enumerate();
        let turns = turns.map(|(choice, events)| ChoiceTurn {
            choice,
            events,
            continuation: request.continues.then(Continuation::default),
        });
        let turns = turns.collect();
        let choices = RunningChoices { request, turns, cancel, observer: None };
        Self { choices, writer, messages_left_out: 0 }
    }

    /// Sets the number of messages that were left out.
    pub(crate) fn truncated(self, messages_left_out: usize) -> Self {
        Self { messages_left_out, ..self }
    }

    /// Number of the oldest messages that were left out, since the conversation does not fit the context
    /// ([`ChatRequest::truncates`]).
    pub fn messages_left_out(&self) -> usize {
        self.messages_left_out
    }

    /// Returns the handle that cancels the request from another thread, also while its prompt is run.
    pub fn canceller(&self) -> CancelHandle {
        self.choices.cancel.clone()
    }

    /// Calls `observe` with each event of all choices, and with the error that ends them. It is dropped with
    /// the request.
    pub fn observed(
        mut self,
        observe: impl FnMut(Result<&ConversationEvent, &ApiError>) + Send + 'static,
    ) -> Self {
        self.choices.observer = Some(Observer(Box::new(observe)));
        self
    }

    /// Waits for the object of the response.
    ///
    /// # Errors
    /// When the execution fails.
    pub async fn object(mut self) -> Result<Value> {
        let choices = self.choices.finished().await?;
        Ok(self.writer.object(&choices))
    }

    /// [`object`](Self::object) for code that may block.
    ///
    /// # Errors
    /// As [`object`](Self::object).
    pub fn wait(self) -> Result<Value> {
        pollster::block_on(self.object())
    }

    /// Converts to a stream of frames.
    pub fn into_stream(self) -> FrameStream<W> {
        FrameStream { running: self, ready: VecDeque::new(), failed: false }
    }

    /// Converts to an iterator over the frames, which blocks.
    pub fn frames(self) -> Frames<W> {
        Frames { stream: self.into_stream() }
    }
}

/// Error that ends a stream.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct StreamError {
    /// The error, for the status of a response that has not started.
    pub error: ApiError,
    /// The error as a frame, for a response that has started.
    pub frame: Frame,
}

/// Stream of the frames of one response. An error is the last item. Dropping the stream cancels the request.
#[derive(Debug)]
#[must_use = "a stream that is dropped is cancelled"]
pub struct FrameStream<W> {
    running: Running<W>,
    ready: VecDeque<Frame>,
    failed: bool,
}

impl<W: ResponseWriter> FrameStream<W> {
    /// Returns the handle that cancels the request from another thread.
    pub fn canceller(&self) -> CancelHandle {
        self.running.canceller()
    }
}

impl<W: ResponseWriter> Stream for FrameStream<W> {
    type Item = Result<Frame, StreamError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(frame) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(frame)));
            }
            if this.failed {
                return Poll::Ready(None);
            }
            let Running { choices, writer, .. } = &mut this.running;
            match ready!(choices.poll_event(context)) {
                Some(Ok((choice, event))) => this.ready.extend(writer.frames(choice, &event)),
                Some(Err(error)) => {
                    this.failed = true;
                    let frame = writer.error(&error);
                    return Poll::Ready(Some(Err(StreamError { error, frame })));
                }
                None => return Poll::Ready(None),
            }
        }
    }
}

/// [`FrameStream`] as an iterator, which blocks.
#[derive(Debug)]
#[must_use = "frames that are dropped are cancelled"]
pub struct Frames<W> {
    stream: FrameStream<W>,
}

impl<W: ResponseWriter> Frames<W> {
    /// Returns the handle that cancels the request from another thread.
    pub fn canceller(&self) -> CancelHandle {
        self.stream.canceller()
    }
}

impl<W: ResponseWriter> Iterator for Frames<W> {
    type Item = Result<Frame, StreamError>;

    /// Waits for the next frame.
    fn next(&mut self) -> Option<Self::Item> {
        pollster::block_on(self.stream.next())
    }
}

impl<W: ResponseWriter> FusedIterator for Frames<W> {}
