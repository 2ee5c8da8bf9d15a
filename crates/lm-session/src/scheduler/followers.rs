//! Prompts with a common prefix that are prefilled at the same time: the first request runs it, the others
//! take its pages.

use lm_model::PAGE_LEN;

use super::{Active, Scheduler};
use crate::scheduler::request::Request;

impl Scheduler {
    /// Gives following requests the pages processed for them meanwhile, and decides again which requests
    /// follow: those where an earlier request is running the next whole page.
    pub(super) fn update_followers(&mut self) {
        if !self.caches.shares_prefixes() {
            return;
        }
        for index in 0..self.active.len() {
            if self.active[index].following {
                self.take_pages(index);
            }
            self.active[index].following = self.follows(index);
        }
    }

    fn take_pages(&mut self, index: usize) {
        let Active { request, prefill, .. } = &mut self.active[index];
        let (session, ids) = (request.session, request.cache_ids());
        let before = self.caches.len(session);
        self.caches.resume(session, &ids[..max_cached(request)], before);
        prefill.cached_tokens = self.caches.len(session).saturating_sub(prefill.prefilled_tokens);
    }

    /// Returns true if an earlier request is running a page that this one needs next.
    fn follows(&self, index: usize) -> bool {
        let follower = &self.active[index];
        let cached = self.caches.len(follower.request.session);
        let is_prompt = |active: &Active| active.prefilling && active.is_runnable_alone();
        let next_page = cached / PAGE_LEN * PAGE_LEN..(cached / PAGE_LEN + 1) * PAGE_LEN;
        if next_page.end > max_cached(&follower.request) {
            return false; // It needs rows of its own.
        }
        let next = follower.request.ids.get(next_page.clone());
        let leads = |leader: &Active| {
            // Most prompts differ there; only the others are compared in full.
            if next.is_none() || leader.request.ids.get(next_page.clone()) != next {
                return false;
            }
            let common = common_pages(&leader.request, &follower.request);
            common > cached && self.caches.len(leader.request.session) < common
        };
        is_prompt(follower) && self.active[..index].iter().any(|leader| is_prompt(leader) && leads(leader))
    }
}

/// Maximum number of tokens of a request that another one may run: all but the last one, and those before the
/// rows that it reads.
fn max_cached(request: &Request) -> usize {
    let last = request.ids.len().saturating_sub(1);
    request.prompt_rows.as_ref().map_or(last, |rows| rows.max_cached().min(last))
}

/// Number of tokens in the common whole pages at the start of both requests; each runs its last token itself.
fn common_pages(leader: &Request, follower: &Request) -> usize {
    if leader.adapter != follower.adapter {
        return 0;
    }
    let limit = leader.ids.len().min(max_cached(follower));
    let (leader, follower) = (leader.cache_ids(), follower.cache_ids());
    let same = std::iter::zip(&leader[..limit], &follower[..limit]);
    same.take_while(|(one, other)| one == other).count() / PAGE_LEN * PAGE_LEN
}
