//! Continuous batching: each step is one forward pass over the pending tokens of all requests.
//!
//! The pending tokens of a request are those missing from its session's cache: many in prefill, the last
//! sampled one in decode. A step takes the decode rows of all requests and as many prompt rows as the chunk
//! and the step budget allow (chunked prefill), short prompts first (`row_budget`). When pages run out, idle
//! sessions are evicted from the end of their sequences, the one idle longest first. Then the youngest
//! request is preempted, and waits until another one ends. Evicted tokens are recomputed: callers notice only
//! the delay.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use lm_model::{CausalLm, Logits};

use crate::cache::KvCaches;
use crate::error::{Error, Result};
use crate::ids::{AdapterId, SessionId};
use crate::media::Encoders;
use crate::metrics::{CacheStats, PrefillStats};
use crate::panics::caught;
use crate::params::EngineSettings;
use crate::scheduler::admission::Waiting;
use crate::scheduler::encodings::Encodings;
use crate::scheduler::model_drafts::ModelDrafts;
use crate::scheduler::request::EndedByCaller;
use crate::scheduler::sampling_pool::SamplingPool;
use crate::scheduler::step_pace::StepPace;

mod active;
mod admission;
mod drafts;
mod encodings;
mod engine_thread;
mod followers;
mod media;
mod model_drafts;
mod prompt_rows;
mod replies;
mod request;
mod row_budget;
mod sampling_job;
mod sampling_pool;
mod step;
mod step_pace;
mod waiting;

use active::Active;
pub(crate) use admission::Admission;
pub(crate) use engine_thread::{is_engine_thread, mark_engine_thread};
use media::ActiveMedia;
pub(crate) use request::{Command, Reply, Request, RequestLimits, Task};
use waiting::WaitingQueue;

/// State of the worker: the caches and the active requests.
pub(crate) struct Scheduler {
    model: Arc<dyn CausalLm>,
    caches: KvCaches,
    /// Draft model of the settings.
    model_drafts: Option<ModelDrafts>,
    /// Size of the pool, in pages of tokens.
    num_pages: usize,
    /// Active requests by priority, then in the order of arrival; one per session at most.
    active: Vec<Active>,
    waiting: WaitingQueue,
    max_running: usize,
    /// Number of requests admitted so far.
    admitted: u64,
    prefill_chunk: usize,
    pace: StepPace,
    /// Requests of a failed batch, which run one per step until each has run or failed: the one at fault then
    /// fails alone.
    isolated: Vec<u64>,
    sampling: SamplingPool,
    encodings: Encodings,
    /// Longest wait of a step for a token that is being sampled.
    sampling_wait: Duration,
    /// True if the last step had no rows, and the state is unchanged since.
    stalled: bool,
    /// Unloaded adapters that requests still use, and the answers to their unloading.
    unloading: Vec<(AdapterId, Sender<()>)>,
    /// True after [`Command::Shutdown`]: requests are rejected.
    draining: bool,
}

/// Counts of an engine, which outlive its schedulers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    /// Requests admitted: a token still being sampled for one of them belongs to no request of the next
    /// scheduler.
    pub admitted: u64,
    /// Media encoded.
    pub encoded: u64,
}

/// Rows of one request in a step.
#[derive(Clone, Copy, Debug)]
struct ScheduledRows {
    /// Index in [`Scheduler::active`].
    active: usize,
    rows: usize,
    /// Rows of draft tokens after them.
    drafts: usize,
}

impl Scheduler {
    /// Creates a scheduler with a pool of `num_pages` pages of tokens. The sampling and encoding threads
    /// answer through `commands`; `totals` are those of the earlier schedulers of this engine.
    pub fn new(
        model: Arc<dyn CausalLm>,
        encoders: Encoders,
        num_pages: usize,
        settings: &EngineSettings,
        commands: Sender<Command>,
        totals: Totals,
    ) -> Result<Self> {
        let Totals { admitted, encoded } = totals;
        let encodings = Encodings::new(encoders, settings.media_cache_bytes, commands.clone(), encoded);
        let &EngineSettings { prefill_chunk, prefix_cache, step_budget, max_running_requests, .. } = settings;
        let caches = KvCaches::new(model.new_cache(num_pages)?, prefix_cache);
        let width = model.info().logits_width;
        let drafts = |draft| ModelDrafts::new(draft, num_pages, prefix_cache, width);
        Ok(Self {
            model,
            caches,
            model_drafts: settings.draft_model.as_ref().map(drafts).transpose()?,
            num_pages,
            active: Vec::new(),
            waiting: WaitingQueue::default(),
            max_running: max_running_requests,
            admitted,
            prefill_chunk,
            pace: StepPace::new(step_budget),
            isolated: Vec::new(),
            sampling: SamplingPool::new(commands),
            encodings,
            sampling_wait: step_budget / 2,
            stalled: false,
            unloading: Vec::new(),
            draining: false,
        })
    }

    /// Counts so far, including earlier schedulers.
    pub fn totals(&self) -> Totals {
        Totals { admitted: self.admitted, encoded: self.encodings.encoded() }
    }

    /// Bytes of the cached encodings of media.
    pub fn media_cache_bytes(&self) -> usize {
        self.encodings.cached_bytes()
    }

    /// Number of active requests.
    pub fn running(&self) -> usize {
        self.active.len()
    }

    /// State of the KV pool.
    pub fn cache_stats(&self) -> CacheStats {
        self.caches.stats()
    }

    /// Returns true if no request is active or waiting.
    pub fn is_idle(&self) -> bool {
        self.active.is_empty() && self.waiting.is_empty()
    }

    /// Returns true if a step would run a request, unless the pool lacks pages for it.
    pub fn is_runnable(&self) -> bool {
        !self.stalled && (self.can_admit() || self.active.iter().any(Active::is_runnable_alone))
    }

    /// Returns true if a waiting request may run.
    fn can_admit(&self) -> bool {
        !self.waiting.is_empty() && self.active.len() < self.max_running
    }

    /// Returns true after a shutdown, when the last request has ended.
    pub fn is_drained(&self) -> bool {
        self.draining && self.is_idle()
    }

    /// Returns the time that the next step should wait for tokens being sampled, so that their sequences are
    /// part of it; `None` without such tokens, or when they have taken too long.
    pub fn sampling_wait(&self) -> Option<Duration> {
        let sampling = self.active.iter().filter(|active| active.is_sampling());
        sampling.filter_map(|active| self.sampling_wait.checked_sub(active.sampling_since.elapsed())).max()
    }

    /// Handles a command. Answers immediately if no forward pass is needed.
    pub fn handle(&mut self, command: Command) {
        self.stalled = false;
        match command {
            Command::Run(request) if self.draining => reject(&request),
            Command::Run(request) => {
                self.stop(request.session);
                // The session's next request is compared with the tokens of this one, even if it never runs.
                self.caches.rewind(request.session, request.matching);
                self.waiting.push(request);
                self.admit_waiting();
            }
            Command::Rewind { session, len, reached } => {
                self.stop(session);
                let _ = reached.send(self.caches.rewind(session, len)); // The receiver may be dropped.
            }
            Command::Fork { from, to } => self.caches.fork(from, to),
            Command::Close { session } => {
                self.stop(session);
                self.caches.close(session);
                self.model_drafts.iter_mut().for_each(|drafts| drafts.close(session));
            }
            // The receivers may be dropped.
            Command::SaveCache { session, len, max_bytes, saved } => {
                drop(saved.send(self.caches.save(session, len, max_bytes)));
            }
            Command::RestoreCache { session, adapter, ids, pages, restored } => {
                self.stop(session);
                drop(restored.send(self.caches.restore(session, adapter, &ids, &pages)));
            }
            Command::CacheStats(answer) => {
                let _ = answer.send(self.cache_stats()); // The receiver may be dropped.
            }
            Command::Sampled(sampled) => self.handle_sampled(*sampled),
            Command::Encoded(encoded) => self.handle_encoded(encoded),
            Command::Encoders(answer) => {
                let _ = answer.send(Ok(self.encodings.encoders().clone())); // The receiver may be dropped.
            }
            Command::DropAdapter { adapter, answer } => self.unloading.push((adapter, answer)),
            Command::Shutdown => self.draining = true,
            Command::Unload(_) | Command::SetKeepAlive(_) | Command::WaitIdle(_) => {} // Handled above the scheduler.
        }
        self.drop_unused_adapters();
    }

    /// Runs one forward pass for the active requests and distributes its results.
    pub fn step(&mut self) {
        self.end_by_callers();
        self.admit_waiting();
        match self.plan() {
            Ok(plan) if plan.is_empty() => self.stalled = true,
            Ok(plan) => {
                self.stalled = false;
                match self.forward(&plan) {
                    Ok(logits) => self.apply(&plan, logits),
                    Err(error) => self.fail_or_isolate(&plan, error),
                }
            }
            Err(full) => self.fail(0, full),
        }
        self.drop_unused_adapters();
    }

    /// Drops the caches of unloaded adapters without requests.
    fn drop_unused_adapters(&mut self) {
        let (active, waiting, caches) = (&self.active, &self.waiting, &mut self.caches);
        let requests = || active.iter().map(|active| &active.request).chain(waiting.iter());
        self.unloading.retain(|&(adapter, ref answer)| {
            let used = requests().any(|request| request.adapter == Some(adapter));
            if !used {
                caches.drop_adapter(adapter);
                let _ = answer.send(()); // The receiver may be dropped.
            }
            used
        });
    }

    /// Ends the requests that are cancelled or past their deadline.
    fn end_by_callers(&mut self) {
        for index in (0..self.active.len()).rev() {
            if let Some(ended) = self.active[index].request.ended_by_caller() {
                self.end_early(index, ended);
            }
        }
        for request in self.waiting.take_ended() {
            self.end_waiting(request);
        }
    }

    /// Ends every request after a panic outside the model's forward pass, and restarts with an empty pool.
    pub fn recover(&mut self, message: &str) {
        self.reset_pool(); // First: the replies report that nothing is cached.
        self.fail_all(|| Error::WorkerPanicked { message: message.to_owned() });
        self.drop_unused_adapters();
    }

    fn fail_all(&mut self, error: impl Fn() -> Error) {
        while !self.active.is_empty() {
            self.fail(0, error());
        }
    }

    fn admit_waiting(&mut self) {
        while self.active.len() < self.max_running
            && let Some(request) = self.waiting.pop()
        {
            self.admit(request);
        }
    }

    fn admit(&mut self, mut request: Request) {
        let session = request.session;
        request.waiting.take().into_iter().for_each(Waiting::admit);
        self.retry_pool();
        self.caches.begin(session, request.adapter);
        let tokens = request.ids.len();
        let mut max_cached = tokens - 1;
        if let Some(rows) = &request.prompt_rows {
            max_cached = rows.max_cached().min(max_cached);
        }
        let all_cached = request.matching >= tokens && self.caches.len(session) == tokens;
        let row = self.caches.take_logits(session).filter(|_| all_cached && request.prompt_rows.is_none());
        if row.is_none() {
            // The last token runs again, to get its logits, and the rows that are read.
            self.caches.resume(session, &request.cache_ids()[..max_cached], request.matching);
        }
        let prefill = PrefillStats { cached_tokens: self.caches.len(session), ..PrefillStats::default() };
        self.admitted += 1;
        let priority = request.limits.priority;
        let index = self.active.partition_point(|active| active.request.limits.priority >= priority);
        let active = Active {
            number: self.admitted,
            alive: Arc::new(()),
            request,
            prefill,
            prompt_tokens: tokens,
            prefilling: true,
            following: false,
            preempted: false,
            media: ActiveMedia::default(),
            sampling_since: Instant::now(),
            draft: Vec::new(),
        };
        self.active.insert(index, active);
        if let Some(ended) = self.active[index].request.ended_by_caller() {
            self.end_early(index, ended);
        } else if let Some(reason) = self.active[index].limit_before_prompt() {
            self.finish(index, reason);
        } else if !self.begin(index)
            && let Some(row) = row
        {
            let width = row.len();
            self.handle_logits(index, &Arc::new(Logits::new(row, width, [1])), 0);
        }
    }

    /// Takes the tokens that a constraint forces from the start; returns true if any.
    fn begin(&mut self, index: usize) -> bool {
        let Active { request, .. } = &mut self.active[index];
        let Task::Generate(generating) = &mut request.task else { return false };
        if !self.caches.can_roll_back() {
            generating.drafter = None;
        }
        let forced = caught(|| Ok(generating.begin(&mut request.ids)));
        let any = forced.as_ref().map_or(true, |forced| !forced.is_empty());
        let (forced, outcome) = match forced {
            Ok(forced) => (forced, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        self.send_events(index, forced, outcome);
        any
    }

    /// Cancels the request of `session`.
    fn stop(&mut self, session: SessionId) {
        if let Some(index) = self.active.iter().position(|active| active.request.session == session) {
            self.end_early(index, EndedByCaller::Cancelled);
        } else if let Some(request) = self.waiting.take(session) {
            self.end_waiting((request, EndedByCaller::Cancelled));
        }
    }
}

/// Answers a request after the engine's end.
fn reject(request: &Request) {
    request.reply(Reply::Failed { error: Error::EngineStopped, cached_tokens: 0 });
}

#[cfg(test)]
mod tests;
