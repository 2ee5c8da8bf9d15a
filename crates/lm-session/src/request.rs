//! What a session asks of the engine's worker, and the answers.

use std::sync::mpsc::Sender;

use lm_model::{AdapterId, TokenId};

use crate::generating::Generating;
use crate::{CacheStats, CancelHandle, Error, SessionEvent};

/// Names a session to the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionId(pub u64);

/// A message to the worker. Commands of one session take effect in the order in which they are sent.
#[derive(Debug)]
pub(crate) enum Command {
    /// Brings the cache up to the request's tokens and does its task.
    Run(Request),
    /// Ends what the session has running and goes back to the last position up to `len` from which it can go on, which is
    /// the answer.
    Rewind { session: SessionId, len: usize, reached: Sender<usize> },
    /// Gives session `to` the cache of session `from`; the pages are shared.
    Fork { from: SessionId, to: SessionId },
    /// Ends what the session has running and forgets its cache.
    Close { session: SessionId },
    /// Asks for the state of the pool.
    CacheStats(Sender<CacheStats>),
}

/// Tokens to bring into the cache and what to do then.
#[derive(Debug)]
pub(crate) struct Request {
    pub session: SessionId,
    /// The session's, always the same.
    pub adapter: Option<AdapterId>,
    /// All tokens of the session.
    pub ids: Vec<TokenId>,
    /// How many of them the session's cache may hold; what it holds beyond is something else.
    pub matching: usize,
    pub task: Task,
    pub cancel: CancelHandle,
    /// Unbounded: the worker never waits for a reader. It holds one event per token at most, so at most a context.
    pub replies: Sender<Reply>,
}

#[derive(Debug)]
pub(crate) enum Task {
    /// Answers when the tokens are in the cache.
    Prefill,
    /// Goes on sampling.
    Generate(Box<Generating>),
}

/// An answer to a [`Request`]. All but a token event end it.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The tokens of a [`Task::Prefill`] are in the cache.
    Prefilled { cached_tokens: usize, prefilled_tokens: usize },
    /// Of a [`Task::Generate`].
    Event(SessionEvent),
    /// The request has ended early; the cache holds this many of its tokens.
    Failed { error: Error, cached_tokens: usize },
}
