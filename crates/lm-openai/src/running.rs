//! Running chat completions.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::iter::FusedIterator;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::stream::{SelectAll, Stream, StreamExt};
use lm_conversation::{CancelHandle, ConversationEvent, Turn, TurnStream};
use serde_json::Value;

use crate::chunks::ChunkWriter;
use crate::error::{ApiError, Result};
use crate::head::CompletionHead;
use crate::request::ChatRequest;
use crate::response::{Choice, completion};

/// A chat completion that runs, made by [`ChatCompletions::start`](crate::ChatCompletions::start). Its choices run concurrently. Dropping it
/// cancels the request.
///
/// It is awaited as one object ([`completion`](Self::completion)) or as a stream of chunks ([`into_stream`](Self::into_stream)), both without
/// a runtime of their own; [`wait`](Self::wait) and [`chunks`](Self::chunks) block.
#[derive(Debug)]
#[must_use = "a completion that is dropped is cancelled"]
pub struct RunningCompletion {
    request: ChatRequest,
    head: CompletionHead,
    /// Unfinished choices.
    turns: SelectAll<ChoiceTurn>,
    /// Cancels all choices.
    cancel: CancelHandle,
}

/// Turn of one choice.
#[derive(Debug)]
struct ChoiceTurn {
    choice: usize,
    turn: TurnStream,
}

impl Stream for ChoiceTurn {
    type Item = (usize, lm_conversation::Result<ConversationEvent>);

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = ready!(Pin::new(&mut self.turn).poll_next(context));
        Poll::Ready(event.map(|event| (self.choice, event)))
    }
}

impl RunningCompletion {
    pub(crate) fn new(
        request: ChatRequest,
        head: CompletionHead,
        turns: Vec<Turn>,
        cancel: CancelHandle,
    ) -> Self {
        let turns = turns.into_iter().enumerate();
        let turns = turns.map(|(choice, turn)| ChoiceTurn { choice, turn: turn.into_stream() }).collect();
        Self { request, head, turns, cancel }
    }

    /// Returns the handle that cancels the request from another thread, also while its prompt is run.
    pub fn canceller(&self) -> CancelHandle {
        self.cancel.clone()
    }

    /// Waits for the completion object.
    ///
    /// # Errors
    /// When the execution fails.
    pub async fn completion(mut self) -> Result<Value> {
        let mut replies: Vec<_> = (0..self.request.choices).map(|_| None).collect();
        let mut scored = vec![Vec::new(); self.request.choices];
        while let Some(event) = poll_fn(|context| self.poll_event(context)).await {
            match event? {
                (choice, ConversationEvent::Finished(reply)) => replies[choice] = Some(reply),
                (choice, ConversationEvent::Logprobs(token)) => scored[choice].push(token),
                _ => {}
            }
        }
        let wants = self.request.turn.logprobs.is_some();
        let choice = |(reply, scored): (Option<_>, _)| {
            let reply = reply.ok_or_else(|| ApiError::server("a turn ended without a reply"))?;
            Ok(Choice { reply, logprobs: wants.then_some(scored) })
        };
        let choices: Vec<Choice> = replies.into_iter().zip(scored).map(choice).collect::<Result<_>>()?;
        Ok(completion(&self.head, &choices))
    }

    /// [`completion`](Self::completion) for code that may block.
    ///
    /// # Errors
    /// As [`completion`](Self::completion).
    pub fn wait(self) -> Result<Value> {
        pollster::block_on(self.completion())
    }

    /// Converts to a stream of chunks.
    pub fn into_stream(self) -> ChunkStream {
        let writer = ChunkWriter::new(self.head.clone(), &self.request);
        ChunkStream { running: self, writer, ready: VecDeque::new(), failed: false }
    }

    /// Converts to an iterator over the chunks, which blocks.
    pub fn chunks(self) -> Chunks {
        Chunks { stream: self.into_stream() }
    }

    /// Polls for the next event of a choice. An error ends all of them.
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<(usize, ConversationEvent)>>> {
        let Some((choice, event)) = ready!(self.turns.poll_next_unpin(context)) else {
            return Poll::Ready(None);
        };
        if event.is_err() {
            self.turns.clear();
        }
        Poll::Ready(Some(event.map(|event| (choice, event)).map_err(|error| self.request.api_error(&error))))
    }
}

/// Stream of the `chat.completion.chunk` objects of one response.
///
/// An error is the last item; a server that has sent a chunk before sends [`ApiError::to_json`] as an event. Dropping the stream
/// cancels the request.
#[derive(Debug)]
#[must_use = "a stream that is dropped is cancelled"]
pub struct ChunkStream {
    running: RunningCompletion,
    writer: ChunkWriter,
    ready: VecDeque<Value>,
    failed: bool,
}

impl ChunkStream {
    /// Returns the handle that cancels the request from another thread.
    pub fn canceller(&self) -> CancelHandle {
        self.running.canceller()
    }
}

impl Stream for ChunkStream {
    type Item = Result<Value>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(chunk) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(chunk)));
            }
            if this.failed {
                return Poll::Ready(None);
            }
            match ready!(this.running.poll_event(context)) {
                Some(Ok((choice, event))) => this.ready.extend(this.writer.chunks(choice, &event)),
                Some(Err(error)) => {
                    this.failed = true;
                    return Poll::Ready(Some(Err(error)));
                }
                None => return Poll::Ready(None),
            }
        }
    }
}

/// [`ChunkStream`] as an iterator, which blocks.
#[derive(Debug)]
#[must_use = "chunks that are dropped are cancelled"]
pub struct Chunks {
    stream: ChunkStream,
}

impl Chunks {
    /// Returns the handle that cancels the request from another thread.
    pub fn canceller(&self) -> CancelHandle {
        self.stream.canceller()
    }
}

impl Iterator for Chunks {
    type Item = Result<Value>;

    /// Waits for the next chunk.
    fn next(&mut self) -> Option<Self::Item> {
        pollster::block_on(self.stream.next())
    }
}

impl FusedIterator for Chunks {}
