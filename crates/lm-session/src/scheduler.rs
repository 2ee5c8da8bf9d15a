//! Continuous batching: each step is one forward pass over the pending tokens of all requests.
//!
//! The pending tokens of a request are those that its session's cache does not hold: many in prefill, the last sampled one in
//! decode. A step takes the decode rows of all requests and as many prompt rows as the chunk allows (chunked prefill), the
//! oldest request first. When pages run out, idle sessions are evicted from the end of their sequences, the one idle longest
//! first. Then the youngest request is preempted, and waits until another one ends. Evicted tokens are recomputed: callers
//! notice only the time it takes.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use lm_model::{Batch, CausalLm, LogitRows, Logits, SequenceInput};

use crate::caches::{KvCaches, Shortage};
use crate::generating::Generated;
use crate::guide::Guide;
use crate::request::{Command, Reply, Request, SessionId, Task};
use crate::{EngineSettings, Error, FinishReason, PrefillStats, Result, SessionEvent};

/// State of the worker: the caches and the active requests.
pub(crate) struct Scheduler {
    model: Arc<dyn CausalLm>,
    caches: KvCaches,
    /// Size of the pool, in pages of tokens.
    num_pages: usize,
    /// Active requests in the order of arrival; one per session at most.
    active: Vec<Active>,
    prefill_chunk: usize,
    batching: Batching,
}

/// Batching mode of forward passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Batching {
    Together,
    /// One request per pass, in turn, after a batch failed: the next failure identifies the request at fault.
    Isolated {
        next: usize,
    },
}

/// An active request. Its cache always lacks at least one of its tokens.
#[derive(Debug)]
struct Active {
    request: Request,
    /// Tokens cached at admission, and tokens run before its first sampled token.
    prefill: PrefillStats,
    /// Number of tokens at admission.
    prompt_tokens: usize,
    /// True until its first logits.
    prefilling: bool,
    /// True if it lost pages to an older request: it waits until a request ends.
    preempted: bool,
}

/// Rows of one request in a step.
#[derive(Clone, Copy, Debug)]
struct ScheduledRows {
    /// Index in [`Scheduler::active`].
    active: usize,
    rows: usize,
}

impl Scheduler {
    /// Creates a scheduler with a pool of `num_pages` pages of tokens.
    pub fn new(model: Arc<dyn CausalLm>, num_pages: usize, settings: &EngineSettings) -> Result<Self> {
        let &EngineSettings { prefill_chunk, prefix_cache, .. } = settings;
        let caches = KvCaches::new(model.new_cache(num_pages)?, prefix_cache);
        let (active, batching) = (Vec::new(), Batching::Together);
        Ok(Self { model, caches, num_pages, active, prefill_chunk, batching })
    }

    /// Returns true if no request is active.
    pub fn is_idle(&self) -> bool {
        self.active.is_empty()
    }

    /// Handles a command. Answers immediately if no forward pass is needed.
    pub fn handle(&mut self, command: Command) {
        match command {
            Command::Run(request) => self.admit(request),
            Command::Rewind { session, len, reached } => {
                self.stop(session);
                let _ = reached.send(self.caches.rewind(session, len)); // The receiver may be gone.
            }
            Command::Fork { from, to } => self.caches.fork(from, to),
            Command::Close { session } => {
                self.stop(session);
                self.caches.close(session);
            }
            Command::CacheStats(answer) => {
                let _ = answer.send(self.caches.stats()); // The receiver may be gone.
            }
        }
    }

    /// Runs one forward pass for the active requests and distributes its results.
    pub fn step(&mut self) {
        for index in (0..self.active.len()).rev() {
            if self.active[index].request.cancel.is_cancelled() {
                self.cancel(index);
            }
        }
        match self.plan() {
            Ok(plan) if plan.is_empty() => {}
            Ok(plan) => match self.forward(&plan) {
                Ok(logits) => self.apply(&plan, &logits),
                Err(error) => self.fail_or_isolate(&plan, error),
            },
            Err(full) => self.fail(0, full),
        }
    }

    /// Ends every request after a panic outside the model's forward pass, and restarts with an empty pool.
    pub fn recover(&mut self, message: &str) {
        self.reset_pool(); // First: the replies report that nothing is cached.
        while !self.active.is_empty() {
            self.fail(0, Error::WorkerPanicked { message: message.to_owned() });
        }
    }

    fn admit(&mut self, request: Request) {
        let session = request.session;
        self.stop(session);
        self.caches.begin(session, request.adapter);
        let tokens = request.ids.len();
        let all_cached = request.matching >= tokens && self.caches.len(session) == tokens;
        let row = self.caches.take_logits(session).filter(|_| all_cached);
        if row.is_none() {
            // The last token runs again, to get its logits.
            self.caches.resume(session, &request.ids[..tokens - 1], request.matching);
        }
        let prefill = PrefillStats { cached_tokens: self.caches.len(session), ..PrefillStats::default() };
        self.active.push(Active {
            request,
            prefill,
            prompt_tokens: tokens,
            prefilling: true,
            preempted: false,
        });
        let index = self.active.len() - 1;
        if self.active[index].request.cancel.is_cancelled() {
            self.cancel(index);
        } else if let Some(reason) = self.active[index].limit() {
            self.finish(index, reason);
        } else if !self.begin(index)
            && let Some(row) = row
        {
            self.handle_logits(index, &row);
        }
    }

    /// Takes the tokens that a constraint forces from the start; returns true if there were any.
    fn begin(&mut self, index: usize) -> bool {
        let Active { request, .. } = &mut self.active[index];
        match &mut request.task {
            Task::Prefill => false,
            Task::Generate(generating) => {
                let forced = generating.begin(&mut request.ids);
                let any = !forced.is_empty();
                self.send_events(index, Ok(forced));
                any
            }
        }
    }

    /// Cancels the active request of `session`.
    fn stop(&mut self, session: SessionId) {
        if let Some(index) = self.active.iter().position(|active| active.request.session == session) {
            self.cancel(index);
        }
    }
}

/// Planning and execution of a step.
impl Scheduler {
    /// Chooses the rows of the next forward pass and reserves the pages for them.
    ///
    /// # Errors
    /// [`Error::CacheFull`] when the oldest request cannot run although all others were evicted.
    fn plan(&mut self) -> Result<Vec<ScheduledRows>> {
        let mut prompt_rows = self.prefill_chunk;
        let mut plan = Vec::new();
        for active in self.scheduled_range() {
            let Active { request, prefilling, preempted: false, .. } = &self.active[active] else { continue };
            let (session, pending) = (request.session, request.ids.len() - self.caches.len(request.session));
            // A decoding request gets a row in every step, independent of the prompts of others.
            let least = if *prefilling && pending > 1 { 0 } else { 1 };
            let rows = pending.min(prompt_rows.max(least));
            if rows == 0 {
                continue;
            }
            match self.make_room(active, rows) {
                Ok(()) => {
                    self.caches.reserve(session, rows);
                    plan.push(ScheduledRows { active, rows });
                    prompt_rows = prompt_rows.saturating_sub(if pending == 1 { 0 } else { rows });
                }
                Err(full) if active == 0 => return Err(full),
                Err(_) => {} // It waits for an older request.
            }
        }
        Ok(plan)
    }

    fn scheduled_range(&mut self) -> Range<usize> {
        match &mut self.batching {
            Batching::Together => 0..self.active.len(),
            Batching::Isolated { next } => {
                let index = *next % self.active.len().max(1);
                *next += 1;
                index..self.active.len().min(index + 1)
            }
        }
    }

    /// Frees pages for `rows` more rows of a request, by eviction and preemption.
    fn make_room(&mut self, index: usize, rows: usize) -> Result<()> {
        let session = self.active[index].request.session;
        while let Some(Shortage { needed_pages, free_pages }) = self.caches.shortage(session, rows) {
            if !self.caches.evict_idle() && !self.preempt_youngest_after(index) {
                return Err(Error::CacheFull { needed_pages, free_pages });
            }
        }
        Ok(())
    }

    fn preempt_youngest_after(&mut self, index: usize) -> bool {
        for active in self.active[index + 1..].iter_mut().rev() {
            if self.caches.evict(active.request.session) {
                active.preempted = true;
                return true;
            }
        }
        false
    }

    fn forward(&mut self, plan: &[ScheduledRows]) -> Result<Logits> {
        let batch = self.batch(plan);
        let rows: usize = plan.iter().map(|scheduled| scheduled.rows).sum();
        let span = step_span(plan.len(), rows);
        let _entered = span.enter();
        let started = Instant::now();
        let (model, pool) = (&self.model, self.caches.pool());
        let outcome = catch_unwind(AssertUnwindSafe(|| model.forward(&batch, pool)));
        span.record("elapsed_ms", started.elapsed().as_secs_f64() * 1e3);
        outcome
            .map_err(|panic| {
                self.reset_pool(); // Its contents after the panic are undefined.
                Error::WorkerPanicked { message: panic_message(&*panic) }
            })?
            .map_err(Error::from)
    }

    fn batch(&self, plan: &[ScheduledRows]) -> Batch {
        let sequence = |scheduled: &ScheduledRows| {
            let request = &self.active[scheduled.active].request;
            let cached_len = self.caches.len(request.session);
            let end = cached_len + scheduled.rows;
            let mut input = SequenceInput::ids(&request.ids[cached_len..end], cached_len, []);
            input.adapter = request.adapter;
            input.final_len = request.ids.len();
            input.block_tables = self.caches.block_tables(request.session, scheduled.rows);
            if end < request.ids.len() {
                input.logits = LogitRows::None;
            }
            input
        };
        Batch { sequences: plan.iter().map(sequence).collect() }
    }

    fn apply(&mut self, plan: &[ScheduledRows], logits: &Logits) {
        // In reverse order: a request that ends leaves the list, and the later ones move.
        for (sequence, scheduled) in plan.iter().enumerate().rev() {
            let active = &mut self.active[scheduled.active];
            let session = active.request.session;
            if active.prefilling {
                let left = active.prompt_tokens.saturating_sub(self.caches.len(session));
                active.prefill.prefilled_tokens += scheduled.rows.min(left);
            }
            self.caches.commit_rows(session, &active.request.ids, scheduled.rows);
            if self.caches.len(session) == active.request.ids.len() {
                self.handle_logits(scheduled.active, logits.sequence(sequence).row(0));
            }
        }
    }

    fn fail_or_isolate(&mut self, plan: &[ScheduledRows], error: Error) {
        if let [scheduled] = plan {
            self.fail(scheduled.active, error);
            self.batching = Batching::Together;
        } else {
            tracing::debug!(sequences = plan.len(), "a batch failed: its requests go on singly");
            self.batching = Batching::Isolated { next: 0 };
        }
    }

    fn reset_pool(&mut self) {
        let model = &self.model;
        let make = || model.new_cache(self.num_pages);
        match catch_unwind(AssertUnwindSafe(|| self.caches.reset(make))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(error = &error as &dyn std::error::Error, "no new KV pool"),
            Err(_) => tracing::error!("no new KV pool: the model panicked"),
        }
    }
}

/// Replies to requests.
impl Scheduler {
    /// Handles the logits of a request's last token.
    fn handle_logits(&mut self, index: usize, row: &[f32]) {
        let Active { request, prefill, prefilling, .. } = &mut self.active[index];
        *prefilling = false;
        match &mut request.task {
            Task::Prefill => {
                let PrefillStats { cached_tokens, prefilled_tokens, .. } = *prefill;
                self.caches.keep_logits(request.session, row);
                self.end(index, Reply::Prefilled { cached_tokens, prefilled_tokens });
            }
            Task::Generate(generating) => {
                let generated = generating.advance(&mut request.ids, row);
                self.send_events(index, generated);
            }
        }
    }

    /// Sends the events of generated tokens, and ends the generation if one of them does.
    fn send_events(&mut self, index: usize, generated: Result<Vec<Generated>>) {
        let request = &self.active[index].request;
        let generated = match generated {
            Ok(generated) => generated,
            Err(error) => return self.fail(index, error),
        };
        let mut finish = None;
        for token in generated {
            tracing::trace!(session = request.session.0, token = token.id, "generated");
            let event = SessionEvent::Token { id: token.id, text: token.text, added: token.added };
            // A reader that is gone has sent a rewind, which ends the request.
            let _ = request.replies.send(Reply::Event(event));
            finish = token.finish;
        }
        if let Some(reason) = finish {
            match self.cut_off(index, &reason) {
                Some(error) => self.fail(index, error),
                None => self.finish(index, reason),
            }
        }
    }

    /// Returns the error of a generation whose tokens ran out in the middle of a constrained text.
    fn cut_off(&mut self, index: usize, reason: &FinishReason) -> Option<Error> {
        let Active { request, prompt_tokens, .. } = &mut self.active[index];
        let Task::Generate(generating) = &mut request.task else { return None };
        let out_of_tokens = matches!(reason, FinishReason::MaxOutputTokens | FinishReason::ContextFull);
        let output_tokens = request.ids.len() - *prompt_tokens;
        let cut_off = out_of_tokens && generating.guide.as_mut().is_some_and(Guide::is_cut_off);
        cut_off.then_some(Error::TextCutOff { output_tokens })
    }

    fn cancel(&mut self, index: usize) {
        match self.active[index].request.task {
            Task::Prefill => self.fail(index, Error::Cancelled),
            Task::Generate(_) => self.finish(index, FinishReason::Cancelled),
        }
    }

    fn finish(&mut self, index: usize, reason: FinishReason) {
        let Active { request, prefill, .. } = &self.active[index];
        let Task::Generate(generating) = &request.task else { return };
        let finished = generating.finished(reason, request.ids.len(), prefill);
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

    fn fail(&mut self, index: usize, error: Error) {
        let session = self.active[index].request.session;
        tracing::debug!(session = session.0, error = &error as &dyn std::error::Error, "request failed");
        self.end(index, Reply::Failed { error, cached_tokens: self.caches.len(session) });
    }

    fn end(&mut self, index: usize, reply: Reply) {
        let Active { request, .. } = self.active.remove(index);
        self.caches.mark_idle(request.session);
        self.active.iter_mut().for_each(|active| active.preempted = false);
        if self.active.is_empty() {
            self.batching = Batching::Together;
        }
        let _ = request.replies.send(reply); // The receiver may be gone.
    }
}

impl Active {
    /// Returns the limit that a generation has reached before it begins, if any.
    fn limit(&self) -> Option<FinishReason> {
        match &self.request.task {
            Task::Prefill => None,
            Task::Generate(generating) => generating.limit(self.request.ids.len()),
        }
    }
}

fn step_span(sequences: usize, rows: usize) -> tracing::Span {
    use tracing::field::Empty;
    if rows > sequences {
        tracing::info_span!("prefill", sequences, rows, elapsed_ms = Empty)
    } else {
        tracing::debug_span!("decode_step", sequences, elapsed_ms = Empty)
    }
}

/// Message of a panic, if it has a text.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
}

#[cfg(test)]
mod tests;
