//! Sampling of tokens, and the replies to requests.

use std::sync::Arc;
use std::time::Instant;

use lm_model::Logits;

use super::{Active, Scheduler};
use crate::error::{Error, Result};
use crate::event::{FinishReason, Finished, SessionEvent};
use crate::generate::Generated;
use crate::metrics::PrefillStats;
use crate::panics::discard;
use crate::scheduler::request::{EndedByCaller, Reply, Request, Task};
use crate::scheduler::sampling_job::{Sampled, SamplingJob, sample};

impl Scheduler {
    /// Handles the logits of a request's last token and of its draft tokens: the rows of `sequence`.
    pub(super) fn handle_logits(&mut self, index: usize, logits: &Arc<Logits>, sequence: usize) {
        let Active { request, prefilling, draft, .. } = &mut self.active[index];
        *prefilling = false;
        match &mut request.task {
            Task::Prefill => {
                self.caches.keep_logits(request.session, logits.sequence(sequence).row(0));
                self.end_prefill(index);
            }
            Task::Generate(generating) if generating.is_argmax() => {
                let mut generated = Vec::new();
                let rows = logits.sequence(sequence);
                let outcome = generating.advance(&mut request.ids, rows, draft, &mut generated);
                self.accept(index, generated, outcome);
            }
            Task::Generate(_) => self.start_sampling(index, logits.clone(), sequence),
            Task::Sampling(_) => {}
        }
    }

    /// Ends a request without a generation.
    pub(super) fn end_prefill(&mut self, index: usize) {
        let PrefillStats { cached_tokens, prefilled_tokens, .. } = self.active[index].prefill;
        self.end(index, Reply::Prefilled { cached_tokens, prefilled_tokens });
    }

    /// Hands a generation to the sampling threads.
    fn start_sampling(&mut self, index: usize, logits: Arc<Logits>, sequence: usize) {
        let Active { number, alive, request, prefill, sampling_since, draft, .. } = &mut self.active[index];
        let Task::Generate(generating) = std::mem::replace(&mut request.task, Task::Prefill) else { return };
        let so_far = generating.finished(FinishReason::Cancelled, request.ids.len(), prefill);
        request.task = Task::Sampling(Box::new(so_far));
        *sampling_since = Instant::now();
        let ids = std::mem::take(&mut request.ids);
        let alive = Arc::downgrade(alive);
        let draft = draft.clone();
        let job = SamplingJob { request: *number, alive, generating, ids, logits, sequence, draft };
        if let Err(job) = self.sampling.send(job) {
            self.handle_sampled(sample(*job)); // The system gives no threads.
        }
    }

    /// Continues a request with its sampled tokens, unless it has ended meanwhile.
    pub(super) fn handle_sampled(&mut self, sampled: Sampled) {
        let Sampled { request: number, ids, generated, outcome } = sampled;
        let Some(index) = self.active.iter().position(|active| active.number == number) else {
            return discard(outcome);
        };
        let request = &mut self.active[index].request;
        request.ids = ids;
        let outcome = outcome.map(|generating| request.task = Task::Generate(generating));
        self.accept(index, generated, outcome);
    }

    /// Takes the sampled tokens of a step.
    fn accept(&mut self, index: usize, generated: Vec<Generated>, outcome: Result<()>) {
        self.keep_accepted(index, generated.len());
        self.send_events(index, generated, outcome);
    }

    /// Sends the events of generated tokens, and ends the generation if one of them or an error after them
    /// does.
    pub(super) fn send_events(&mut self, index: usize, generated: Vec<Generated>, outcome: Result<()>) {
        let request = &self.active[index].request;
        let mut finish = None;
        for token in generated {
            tracing::trace!(session = request.session.0, token = token.id, "generated");
            let Generated { id, text, added, logprobs, steered, finish: ended } = token;
            let event = SessionEvent::Token { id, text, added, logprobs, steered };
            request.reply(Reply::Event(event));
            finish = ended;
        }
        match finish.or(outcome.err().map(Err)) {
            Some(Ok(reason)) => self.finish(index, reason),
            Some(Err(cut_off)) => self.fail(index, cut_off),
            None => {}
        }
    }

    /// Ends a cancelled request, or one past its deadline.
    pub(super) fn end_early(&mut self, index: usize, ended: EndedByCaller) {
        match self.active[index].request.task {
            Task::Prefill => self.fail(index, Error::Cancelled),
            Task::Generate(_) | Task::Sampling(_) => self.finish(index, ended.into()),
        }
    }

    /// Ends a waiting request.
    pub(super) fn end_waiting(&mut self, (mut request, ended): (Request, EndedByCaller)) {
        let reply = match finished(&mut request, &PrefillStats::default(), ended.into()) {
            Some(finished) => Reply::Event(SessionEvent::Finished(finished)),
            None => Reply::Failed {
                error: Error::Cancelled,
                cached_tokens: self.caches.len(request.session).min(request.matching),
            },
        };
        request.reply(reply);
    }

    pub(super) fn finish(&mut self, index: usize, reason: FinishReason) {
        let Active { request, prefill, .. } = &mut self.active[index];
        let Some(finished) = finished(request, prefill, reason) else { return };
        tracing::debug!(
            session = request.session.0,
            prompt_tokens = finished.usage.prompt_tokens,
            cached_tokens = finished.usage.cached_tokens,
            output_tokens = finished.usage.output_tokens,
            ttft_ms = finished.timing.ttft.map(|ttft| ttft.as_secs_f64() * 1e3),
            "generation finished"
        );
        self.end(index, Reply::Event(SessionEvent::Finished(finished)));
    }

    pub(super) fn fail(&mut self, index: usize, error: Error) {
        let session = self.active[index].request.session;
        tracing::debug!(session = session.0, error = &error as &dyn std::error::Error, "request failed");
        self.end(index, Reply::Failed { error, cached_tokens: self.caches.len(session) });
    }

    fn end(&mut self, index: usize, reply: Reply) {
        let Active { request, .. } = self.active.remove(index);
        self.caches.mark_idle(request.session);
        self.active.iter_mut().for_each(|active| active.preempted = false);
        request.reply(reply);
        discard(request.task);
    }
}

/// Ends the generation of a request and summarises it; `None` for a prefill.
fn finished(request: &mut Request, prefill: &PrefillStats, reason: FinishReason) -> Option<Finished> {
    match std::mem::replace(&mut request.task, Task::Prefill) {
        Task::Prefill => None,
        Task::Generate(generating) => {
            let finished = generating.finished(reason, request.ids.len(), prefill);
            discard(generating);
            Some(finished)
        }
        Task::Sampling(so_far) => Some(Finished { reason, ..*so_far }),
    }
}

impl From<EndedByCaller> for FinishReason {
    fn from(ended: EndedByCaller) -> Self {
        match ended {
            EndedByCaller::Cancelled => Self::Cancelled,
            EndedByCaller::DeadlineExceeded => Self::DeadlineExceeded,
        }
    }
}
