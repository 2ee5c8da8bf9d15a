//! Active requests.

use std::sync::Arc;
use std::time::Instant;

use lm_tokenizer::TokenId;

use super::media::ActiveMedia;
use crate::event::{FinishReason, PrefillProgress, SessionEvent};
use crate::metrics::PrefillStats;
use crate::scheduler::request::{Reply, Request, Task};

/// An active request. Its cache always lacks at least one of its tokens.
#[derive(Debug)]
pub(super) struct Active {
    /// Number of the request, unique in this engine.
    pub(super) number: u64,
    /// Dropped with the request: its pending sampling jobs are then skipped.
    pub(super) alive: Arc<()>,
    pub(super) request: Request,
    /// Tokens cached at admission, and tokens run before its first sampled token.
    pub(super) prefill: PrefillStats,
    /// Number of tokens at admission.
    pub(super) prompt_tokens: usize,
    /// True until its first logits.
    pub(super) prefilling: bool,
    /// True while it waits for an earlier request that runs a page of its prompt.
    pub(super) following: bool,
    /// True if it lost pages to an older request and waits until a request ends.
    pub(super) preempted: bool,
    /// Encodings of its media.
    pub(super) media: ActiveMedia,
    /// Time of the last hand-over to the sampling threads.
    pub(super) sampling_since: Instant,
    /// Draft tokens that run after its tokens in the current step.
    pub(super) draft: Vec<TokenId>,
}

impl Active {
    /// Counts `rows` prompt tokens processed after the first `cached_len` tokens, and reports the progress of
    /// a generation.
    pub(super) fn count_prefilled(&mut self, rows: usize, cached_len: usize) {
        let prompt_tokens = self.prompt_tokens;
        // Tokens that run again after preemption count once.
        let run = (cached_len + rows).min(prompt_tokens);
        self.prefill.cached_tokens = self.prefill.cached_tokens.min(cached_len);
        self.prefill.prefilled_tokens = run.saturating_sub(self.prefill.cached_tokens);
        if matches!(self.request.task, Task::Generate(_)) {
            let PrefillStats { cached_tokens, prefilled_tokens, .. } = self.prefill;
            let progress = PrefillProgress { cached_tokens, prefilled_tokens, prompt_tokens };
            self.request.reply(Reply::Event(SessionEvent::Prefill(progress)));
        }
    }

    /// Returns true if its next token is being sampled.
    pub(super) fn is_sampling(&self) -> bool {
        matches!(self.request.task, Task::Sampling(_))
    }

    /// Returns true if it would run in a step without other requests.
    pub(super) fn is_runnable_alone(&self) -> bool {
        !self.preempted && !self.is_sampling() && self.media.awaited.is_none()
    }

    pub(super) fn is_runnable(&self) -> bool {
        self.is_runnable_alone() && !self.following
    }

    /// Returns the limit that a generation has reached before its prompt runs, if any.
    pub(super) fn limit_before_prompt(&self) -> Option<FinishReason> {
        self.limit().filter(|_| self.request.prompt_rows.is_none())
    }

    /// Returns the limit that a generation has reached before its first token, if any.
    pub(super) fn limit(&self) -> Option<FinishReason> {
        match &self.request.task {
            Task::Prefill | Task::Sampling(_) => None,
            Task::Generate(generating) => generating.limit(self.request.ids.len()),
        }
    }
}
