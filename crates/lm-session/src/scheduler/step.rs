//! Plan of a step, and its forward pass.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lm_model::{Batch, Direction, LogitRows, Logits, SequenceInput};

use super::{Active, ScheduledRows, Scheduler};
use crate::cache::Shortage;
use crate::error::{Error, Result};
use crate::generate::PromptRows;
use crate::panics::panic_message;
use crate::scheduler::row_budget::{RowBudget, RowNeed};

impl Scheduler {
    /// Chooses the rows of the next forward pass and reserves the pages for them.
    ///
    /// # Errors
    /// [`Error::CacheFull`] when the oldest request cannot run although all others were evicted.
    pub(super) fn plan(&mut self) -> Result<Vec<ScheduledRows>> {
        self.update_followers();
        let active = &self.active;
        self.isolated.retain(|suspect| active.iter().any(|active| active.number == *suspect));
        let runnable = (0..active.len()).filter(|&index| active[index].is_runnable());
        let (suspects, others): (Vec<_>, Vec<_>) =
            runnable.partition(|&index| self.isolated.contains(&active[index].number));
        for suspect in suspects {
            let plan = self.plan_rows(vec![suspect])?;
            if !plan.is_empty() {
                return Ok(plan);
            }
        }
        // No isolated request, or none with free pages: the requests that hold the pages have to continue.
        self.plan_rows(others)
    }

    /// Chooses the rows of these requests.
    fn plan_rows(&mut self, candidates: Vec<usize>) -> Result<Vec<ScheduledRows>> {
        let rows = match self.model.info().direction {
            Direction::Causal => self.share_rows(&candidates),
            Direction::Bidirectional => self.whole_prompts(&candidates),
        };
        let mut plan = Vec::new();
        for (active, rows) in candidates.into_iter().zip(rows).filter(|(_, rows)| *rows > 0) {
            if self.active[active].preempted {
                continue; // An older one has just taken its pages.
            }
            let rows = self.fit_media(active, rows);
            if rows == 0 {
                continue; // A media item is being encoded for it.
            }
            match self.make_room(active, rows) {
                Ok(()) => {
                    self.caches.reserve(self.active[active].request.session, rows);
                    plan.push(ScheduledRows { active, rows, drafts: 0 });
                }
                Err(full) if active == 0 => return Err(full),
                Err(_) => {} // It waits for an older request.
            }
        }
        self.plan_drafts(&mut plan);
        Ok(plan)
    }

    /// Distributes the rows of a step over requests: each decoding one gets its row. The rest goes to the
    /// prompts of the highest priority, and the rest to the next priority.
    fn share_rows(&self, candidates: &[usize]) -> Vec<usize> {
        let pending = |index: usize| {
            let request = &self.active[index].request;
            request.ids.len() - self.caches.len(request.session)
        };
        let is_prompt = |index: usize| self.active[index].prefilling && pending(index) > 1;
        let mut rows: Vec<usize> = candidates.iter().map(|&index| usize::from(!is_prompt(index))).collect();
        let mut left =
            RowBudget::new(self.prompt_rows(), self.prefill_chunk, self.pace.long_rows(self.prefill_chunk));
        let priority = |need: &RowNeed| self.active[candidates[need.at]].request.limits.priority;
        let need = |at: usize| RowNeed { at, rows: pending(candidates[at]) - rows[at] };
        let needs: Vec<RowNeed> = (0..candidates.len()).map(need).filter(|need| need.rows > 0).collect();
        for class in needs.chunk_by(|one, other| priority(one) == priority(other)) {
            for RowNeed { at, rows: share } in left.share(class) {
                rows[at] += share;
            }
        }
        rows
    }

    /// Chooses the prompts of a model that reads them in one call: the first one, and those that fit beside
    /// it.
    fn whole_prompts(&self, candidates: &[usize]) -> Vec<usize> {
        let mut left = self.prompt_rows();
        let rows = candidates.iter().enumerate().map(|(at, &index)| {
            let rows = self.active[index].request.ids.len();
            let runs = at == 0 || rows <= left;
            left = left.saturating_sub(if runs { rows } else { 0 });
            if runs { rows } else { 0 }
        });
        rows.collect()
    }

    /// Number of prompt rows of the next step: the chunk, or the rows within the time budget while another
    /// session decodes or another model waits for the device. Forced tokens of a single session delay no
    /// other.
    pub(super) fn prompt_rows(&self) -> usize {
        let decoding = self.active.iter().any(|active| !active.prefilling && !active.preempted);
        match (decoding, self.model.shares_device()) {
            (true, shares) if shares || self.active.len() > 1 => self.pace.prompt_rows(self.prefill_chunk),
            (false, true) => self.pace.shared_rows(self.prefill_chunk),
            _ => self.prefill_chunk,
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

    pub(super) fn forward(&mut self, plan: &[ScheduledRows]) -> Result<Logits> {
        let batch = self.batch(plan);
        let rows: usize = plan.iter().map(|scheduled| scheduled.rows).sum();
        let drafts: usize = plan.iter().map(|scheduled| scheduled.drafts).sum();
        let span = step_span(plan.len(), rows);
        let _entered = span.enter();
        let started = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| self.run_model(plan, &batch)));
        let elapsed = started.elapsed();
        span.record("elapsed_ms", elapsed.as_secs_f64() * 1e3);
        if matches!(outcome, Ok(Ok(_))) {
            self.record_pace(plan, rows, drafts, elapsed);
        }
        outcome.map_err(|panic| {
            self.reset_pool(); // Its contents after the panic are undefined.
            Error::WorkerPanicked { message: panic_message(&*panic) }
        })?
    }

    fn record_pace(&mut self, plan: &[ScheduledRows], rows: usize, drafts: usize, elapsed: Duration) {
        let decodes = plan.iter().any(|scheduled| !self.active[scheduled.active].prefilling);
        match decodes {
            true => self.pace.record(rows - plan.len(), drafts, elapsed),
            false => self.pace.record_prompts(rows, elapsed),
        }
    }

    fn batch(&self, plan: &[ScheduledRows]) -> Batch {
        let sequence = |scheduled: &ScheduledRows| {
            let &ScheduledRows { active, rows, drafts } = scheduled;
            let Active { request, draft, prompt_tokens, .. } = &self.active[active];
            let cached_len = self.caches.len(request.session);
            let end = cached_len + rows;
            let ids = [&request.ids[cached_len..end], draft].concat();
            let mut input = SequenceInput::ids(ids, cached_len, []);
            self.active[active].add_media(&mut input);
            let prompt_rows = request.prompt_rows.as_deref();
            input.second_text = prompt_rows.and_then(PromptRows::second_text);
            input.adapter = request.low_ranks.clone();
            // Also of evicted rows of the output that run again.
            input.final_len = *prompt_tokens;
            input.block_tables = self.caches.block_tables(request.session, rows + drafts);
            let read = self.rows_to_read(scheduled);
            let is_pooled = prompt_rows.is_some_and(PromptRows::is_pooled);
            let sampled = if is_pooled || end < request.ids.len() { 0..0 } else { rows - 1..rows + drafts };
            input.logits = LogitRows::Rows(read.chain(sampled).collect());
            input
        };
        Batch { sequences: plan.iter().map(sequence).collect() }
    }

    pub(super) fn apply(&mut self, plan: &[ScheduledRows], logits: Logits) {
        let logits = Arc::new(logits);
        // In reverse order: a request that ends leaves the list, and the later ones move.
        for (sequence, scheduled) in plan.iter().enumerate().rev() {
            let active = &mut self.active[scheduled.active];
            let (session, number) = (active.request.session, active.number);
            if active.prefilling {
                active.count_prefilled(scheduled.rows, self.caches.len(session));
            }
            self.isolated.retain(|suspect| *suspect != number);
            self.caches.commit_rows(session, &active.request.cache_ids(), scheduled.rows);
            active.media.release(&active.request.media, self.caches.len(session));
            if self.send_prompt_output(scheduled.active) {
                continue;
            }
            if self.caches.len(session) == self.active[scheduled.active].request.ids.len() {
                self.handle_logits(scheduled.active, &logits, sequence);
            }
        }
    }

    /// Fails the request of a step that ran alone, or runs the requests of a failed batch one by one.
    pub(super) fn fail_or_isolate(&mut self, plan: &[ScheduledRows], error: Error) {
        if let [scheduled] = plan {
            self.fail(scheduled.active, error);
        } else {
            tracing::debug!(sequences = plan.len(), "a batch failed: its requests run one by one");
            self.isolated = plan.iter().map(|scheduled| self.active[scheduled.active].number).collect();
        }
    }

    pub(super) fn reset_pool(&mut self) {
        let model = &self.model;
        let make = || model.new_cache(self.num_pages);
        match catch_unwind(AssertUnwindSafe(|| self.caches.reset(make))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(error = &error as &dyn std::error::Error, "no new KV pool"),
            Err(_) => tracing::error!("no new KV pool: the model panicked"),
        }
    }

    /// Allocates the pool again if the last attempt failed.
    pub(super) fn retry_pool(&mut self) {
        if self.active.is_empty() && self.caches.stats().total_pages == 0 {
            self.reset_pool();
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
