//! Commands from sessions to the engine's worker, and the replies.

use crate::ids::SessionId;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use lm_model::Adapter;
use lm_tokenizer::TokenId;

use crate::cancel::CancelHandle;
use crate::error::{Error, Result};
use crate::event::{Finished, SessionEvent};
use crate::generate::{Generating, Guide, PromptOutput, PromptRows};
use crate::ids::AdapterId;
use crate::media::{Encoded, Encoders, MediaSpan};
use crate::metrics::CacheStats;
use crate::saved::SavedPages;
use crate::scheduler::admission::{RequestSize, Waiting};
use crate::scheduler::sampling_job::Sampled;

/// A message to the worker. Commands of one session take effect in the order of sending.
#[derive(Debug)]
pub(crate) enum Command {
    /// Prefills the cache with the request's tokens, then runs its task.
    Run(Request),
    /// Ends the session's request and truncates its cache to the largest resumable position ≤ `len`, which is
    /// the answer.
    Rewind { session: SessionId, len: usize, reached: Sender<usize> },
    /// Gives session `to` a copy of the cache of session `from`; the pages are shared.
    Fork { from: SessionId, to: SessionId },
    /// Ends the session's request and drops its cache.
    Close { session: SessionId },
    /// Copies the pages of the first `len` tokens of the session, as far as they are cached.
    SaveCache { session: SessionId, len: usize, max_bytes: usize, saved: Sender<SavedPages> },
    /// Ends the session's request and replaces its cache; the answer is false if the pool has no room for it.
    RestoreCache {
        session: SessionId,
        adapter: Option<AdapterId>,
        ids: Vec<TokenId>,
        pages: Arc<[u8]>,
        restored: Sender<Result<bool>>,
    },
    /// Requests the state of the pool.
    CacheStats(Sender<CacheStats>),
    /// Answer of the sampling threads.
    Sampled(Box<Sampled>),
    /// Answer of the encoding thread.
    Encoded(Encoded),
    /// Requests the encoders of media; loads the model if it is not in memory.
    Encoders(Sender<Result<Encoders>>),
    /// Answers when no request runs or waits.
    WaitIdle(Sender<()>),
    /// Releases the model if no request runs or waits; the answer is true if it is not in memory afterwards.
    Unload(Sender<bool>),
    /// Sets the time after which the idle model is released; see [`crate::EngineSettings::keep_alive`].
    SetKeepAlive(Option<Duration>),
    /// Drops the cached prefixes of an adapter after its last request has ended, and answers then.
    DropAdapter { adapter: AdapterId, answer: Sender<()> },
    /// Ends the active requests and the worker.
    Shutdown,
}

/// A request: tokens to bring into the cache, and the task after that.
#[derive(Debug)]
pub(crate) struct Request {
    pub session: SessionId,
    /// Adapter of the session; never changes.
    pub adapter: Option<AdapterId>,
    /// Its matrices, since the submission.
    pub low_ranks: Option<Adapter>,
    /// All tokens of the session; the placeholder's id in place of the rows of media.
    pub ids: Vec<TokenId>,
    /// Rows of media among them.
    pub media: Vec<MediaSpan>,
    /// Number of leading `ids` that the session's cache may hold; cached tokens beyond it are different ones.
    pub matching: usize,
    pub task: Task,
    /// Output of the prompt's rows, until all have been read.
    pub prompt_rows: Option<Box<PromptRows>>,
    pub limits: RequestLimits,
    /// Place among the waiting requests, until the request runs.
    pub waiting: Option<Waiting>,
    /// Unbounded: the worker never waits for a reader. It holds one event per token or step at most, so at
    /// most a context.
    pub replies: async_channel::Sender<Reply>,
}

/// Conditions under which a request runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestLimits {
    pub cancel: CancelHandle,
    /// Time at which the request ends unconditionally.
    pub deadline: Option<Instant>,
    /// Requests of a higher priority are admitted first, prefilled first and preempted last.
    pub priority: i32,
    /// True for the rest of an output whose start was read: it is never rejected, and admitted first of its
    /// priority.
    pub continues: bool,
}

#[derive(Debug)]
pub(crate) enum Task {
    /// Answers when the tokens are in the cache.
    Prefill,
    /// Samples tokens after them.
    Generate(Box<Generating>),
    /// A [`Task::Generate`] whose next token is being sampled. Holds its last event in case it is cancelled
    /// meanwhile.
    Sampling(Box<Finished>),
}

/// Answer to a [`Request`]. All but the prompt's output, a token event or a progress event end it.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The tokens of a [`Task::Prefill`] are in the cache.
    Prefilled { cached_tokens: usize, prefilled_tokens: usize },
    /// Output of the prompt's rows, before the first token.
    Prompt(PromptOutput),
    /// Event of a [`Task::Generate`].
    Event(SessionEvent),
    /// The request failed; the cache holds this many of its tokens.
    Failed { error: Error, cached_tokens: usize },
}

impl Request {
    /// Sends a reply. The reader may be dropped: it has then ended the request.
    pub fn reply(&self, reply: Reply) {
        let _ = self.replies.try_send(reply);
    }

    /// Tokens that identify the sequence in caches: virtual ids in place of the rows of media.
    pub fn cache_ids(&self) -> Cow<'_, [TokenId]> {
        let mut ids = Cow::Borrowed(&self.ids[..]);
        for span in &self.media {
            // There are none while a token is being sampled.
            if let Some(rows) = ids.to_mut().get_mut(span.places()) {
                rows.copy_from_slice(span.ids());
            }
        }
        ids
    }

    /// Memory of the waiting request.
    pub fn size(&self) -> RequestSize {
        let guide = match &self.task {
            Task::Generate(generating) => generating.guide.as_ref(),
            Task::Prefill | Task::Sampling(_) => None,
        };
        RequestSize { tokens: self.ids.len(), grammar_bytes: guide.map_or(0, Guide::state_bytes) }
    }

    /// Returns the reason to end the request now, if any.
    pub fn ended_by_caller(&self) -> Option<EndedByCaller> {
        let RequestLimits { cancel, deadline, .. } = &self.limits;
        if cancel.is_cancelled() {
            Some(EndedByCaller::Cancelled)
        } else if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            Some(EndedByCaller::DeadlineExceeded)
        } else {
            None
        }
    }
}

/// End of a request set by its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndedByCaller {
    Cancelled,
    DeadlineExceeded,
}
