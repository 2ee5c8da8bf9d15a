//! Draft tokens in a step: the rows they take, and those that stay in the cache.

use super::{Active, ScheduledRows, Scheduler};
use crate::generating::accepted;
use crate::request::Task;

/// Maximum number of draft rows of a step, over all requests: each has a row of logits.
const MAX_ROWS: usize = 64;

impl Scheduler {
    /// Adds draft tokens to the rows of a step: to generations whose last token is part of it, as many as pay and find free pages.
    pub(super) fn plan_drafts(&mut self, plan: &mut [ScheduledRows]) {
        let decoding = plan.iter().filter(|scheduled| !self.active[scheduled.active].prefilling).count();
        let row_cost = self.pace.draft_row() * decoding as f64;
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

    /// Keeps the rows of the draft tokens that were accepted in the cache: of the last `new` tokens of the request. The last token of
    /// a request always runs with its next step.
    pub(super) fn keep_accepted(&mut self, index: usize, new: usize) {
        let Active { request, draft, .. } = &mut self.active[index];
        let before = request.ids.len() - new;
        let kept = accepted(draft, &request.ids[before..]).min(new.saturating_sub(1));
        draft.clear();
        if kept > 0 {
            self.caches.commit_drafts(request.session, &request.ids, before, before + kept);
        }
    }
}
