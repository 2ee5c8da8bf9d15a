//! Sampling of tokens, and the replies to requests.

use std::sync::Arc;
use std::time::Instant;

use lm_model::Logits;

use super::{Active, Scheduler};
use crate::generating::Generated;
use crate::panics::discard;
use crate::request::{Reply, Task};
use crate::sampling_pool::{Sampled, SamplingJob, sample};
use crate::{Error, FinishReason, Finished, PrefillStats, Result, SessionEvent};

impl Scheduler {
    /// Handles the logits of a request's last token: one row of `sequence`.
    pub(super) fn handle_logits(&mut self, index: usize, logits: &Arc<Logits>, sequence: usize) {
        let Active { request, prefill, prefilling, .. } = &mut self.active[index];
        *prefilling = false;
        match &mut request.task {
            Task::Prefill => {
                let PrefillStats { cached_tokens, prefilled_tokens, .. } = *prefill;
                self.caches.keep_logits(request.session, logits.sequence(sequence).row(0));
                self.end(index, Reply::Prefilled { cached_tokens, prefilled_tokens });
            }
            Task::Generate(generating) if generating.is_argmax() => {
                let generated = generating.advance(&mut request.ids, logits.sequence(sequence).row(0));
                self.send_events(index, generated);
            }
            Task::Generate(_) => self.start_sampling(index, logits.clone(), sequence),
            Task::Sampling(_) => {}
        }
    }

    /// Hands a generation to the sampling threads.
    fn start_sampling(&mut self, index: usize, logits: Arc<Logits>, sequence: usize) {
        let Active { number, alive, request, prefill, sampling_since, .. } = &mut self.active[index];
        let Task::Generate(generating) = std::mem::replace(&mut request.task, Task::Prefill) else { return };
        let so_far = generating.finished(FinishReason::Cancelled, request.ids.len(), prefill);
        request.task = Task::Sampling(Box::new(so_far));
        *sampling_since = Instant::now();
        let ids = std::mem::take(&mut request.ids);
        let alive = Arc::downgrade(alive);
        let job = SamplingJob { request: *number, alive, generating, ids, logits, sequence };
        if let Err(job) = self.sampling.send(job) {
            self.handle_sampled(sample(*job)); // The system gives no threads.
        }
    }

    /// Continues a request with its sampled tokens, unless it has ended meanwhile.
    pub(super) fn handle_sampled(&mut self, sampled: Sampled) {
        let Sampled { request: number, ids, outcome } = sampled;
        let Some(index) = self.active.iter().position(|active| active.number == number) else {
            return discard(outcome);
        };
        let request = &mut self.active[index].request;
        request.ids = ids;
        let generated = outcome.map(|(generating, generated)| {
            request.task = Task::Generate(generating);
            generated
        });
        self.send_events(index, generated);
    }

    /// Sends the events of generated tokens, and ends the generation if one of them does.
    pub(super) fn send_events(&mut self, index: usize, generated: Result<Vec<Generated>>) {
        let request = &self.active[index].request;
        let generated = match generated {
            Ok(generated) => generated,
            Err(error) => return self.fail(index, error),
        };
        let mut finish = None;
        for token in generated {
            tracing::trace!(session = request.session.0, token = token.id, "generated");
            let Generated { id, text, added, logprobs, finish: ended } = token;
            let event = SessionEvent::Token { id, text, added, logprobs };
            // A reader that is gone has sent a rewind, which ends the request.
            let _ = request.replies.send(Reply::Event(event));
            finish = ended;
        }
        match finish {
            Some(Ok(reason)) => self.finish(index, reason),
            Some(Err(cut_off)) => self.fail(index, cut_off),
            None => {}
        }
    }

    pub(super) fn cancel(&mut self, index: usize) {
        match self.active[index].request.task {
            Task::Prefill => self.fail(index, Error::Cancelled),
            Task::Generate(_) | Task::Sampling(_) => self.finish(index, FinishReason::Cancelled),
        }
    }

    pub(super) fn finish(&mut self, index: usize, reason: FinishReason) {
        let Active { request, prefill, .. } = &mut self.active[index];
        let finished = match std::mem::replace(&mut request.task, Task::Prefill) {
            Task::Prefill => return,
            Task::Generate(generating) => {
                let finished = generating.finished(reason, request.ids.len(), prefill);
                discard(generating);
                finished
            }
            Task::Sampling(so_far) => Finished { reason, ..*so_far },
        };
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
        let _ = request.replies.send(reply); // The receiver may be gone.
        discard(request.task);
    }
}
