//! Draft tokens in a step: their rows, and the accepted rows in the cache.

use super::{Active, ScheduledRows, Scheduler};
use crate::generate::accepted;
use crate::scheduler::model_drafts::DraftRequest;
use crate::scheduler::request::Task;

/// Maximum number of draft rows of a step, over all requests: each has a row of logits.
const MAX_ROWS: usize = 64;

impl Scheduler {
    /// Adds draft tokens to the rows of a step: to generations whose last token is part of it, as many as are
    /// profitable and have free pages.
    pub(super) fn plan_drafts(&mut self, plan: &mut [ScheduledRows]) {
        let decoding = plan.iter().filter(|scheduled| !self.active[scheduled.active].prefilling).count();
        let row_cost = self.pace.draft_row() * decoding as f64;
        self.draft_by_model(plan, row_cost);
        let mut left = MAX_ROWS;
        for scheduled in plan {
            let Active { request, draft, .. } = &mut self.active[scheduled.active];
            draft.clear();
            let end = self.caches.len(request.session) + scheduled.rows;
            if let Task::Generate(generating) = &request.task
                && end == request.ids.len()
            {
                draft.extend(generating.draft(row_cost).iter().take(left));
            }
            let rows = scheduled.rows + draft.len();
            if self.caches.shortage(request.session, rows).is_some() {
                draft.clear();
            } else if !draft.is_empty() {
                self.caches.reserve(request.session, rows);
            }
            scheduled.drafts = draft.len();
            left -= draft.len();
        }
    }

    /// Lets the draft model, if any, draft for the generations without a profitable draft.
    fn draft_by_model(&mut self, plan: &[ScheduledRows], row_cost: f64) {
        let max_rows = self.prompt_rows();
        let Some(drafts) = &mut self.model_drafts else { return };
        let token_cost = row_cost + self.pace.relative(drafts.step_seconds());
        let mut limits = vec![0; self.active.len()];
        for &ScheduledRows { active, rows, .. } in plan {
            let Active { request, .. } = &mut self.active[active];
            let at_end = self.caches.len(request.session) + rows == request.ids.len();
            if let Task::Generate(generating) = &mut request.task
                && request.media.is_empty() // The draft model does not see them.
                && let Some(drafter) = generating.drafter.as_mut().filter(|_| at_end)
            {
                limits[active] = drafter.model_draft_len(row_cost, token_cost);
            }
        }
        let wanted: Vec<usize> = (0..limits.len()).filter(|&index| limits[index] > 0).collect();
        let request = |&index: &usize| {
            let request = &self.active[index].request;
            let stop_ids = match &request.task {
                Task::Generate(generating) => &generating.stop_ids[..],
                _ => &[],
            };
            DraftRequest { session: request.session, ids: &request.ids, limit: limits[index], stop_ids }
        };
        let requests: Vec<DraftRequest<'_>> = wanted.iter().map(request).collect();
        match drafts.draft(&requests, max_rows) {
            Ok(found) => {
                for (index, draft) in wanted.into_iter().zip(found) {
                    if let Task::Generate(generating) = &mut self.active[index].request.task
                        && let Some(drafter) = &mut generating.drafter
                    {
                        drafter.set_model_draft(draft);
                    }
                }
            }
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "the draft model failed; it drafts no more"
                );
                self.model_drafts = None;
            }
        }
    }

    /// Keeps the rows of the draft tokens that were accepted in the cache: of the last `new` tokens of the
    /// request. The last token of a request always runs with its next step.
    pub(super) fn keep_accepted(&mut self, index: usize, new: usize) {
        let Active { request, draft, .. } = &mut self.active[index];
        let before = request.ids.len() - new;
        let kept = accepted(draft, &request.ids[before..]).min(new.saturating_sub(1));
        draft.clear();
        if kept > 0 {
            self.caches.commit_drafts(request.session, &request.cache_ids(), before, before + kept);
        }
    }
}
