//! The KV pool and what it holds of each session.

use std::collections::HashMap;

use lm_model::{KvPool, PAGE_LEN, PageId};

use crate::CacheStats;
use crate::pages::{PageAllocator, PageTable};
use crate::request::SessionId;

/// One pool of pages, shared by all sessions.
pub(crate) struct KvCaches {
    pool: KvPool,
    allocator: PageAllocator,
    sessions: HashMap<SessionId, SessionCache>,
    /// Counts requests that ended: the clock of `resting_since`.
    ended: u64,
    evicted_pages: u64,
}

/// The cache of one session.
#[derive(Debug, Default)]
struct SessionCache {
    table: PageTable,
    /// Logits of the last cached token, until another one follows it.
    logits: Option<Vec<f32>>,
    /// When its last request ended; `None` while one is under way.
    resting_since: Option<u64>,
}

impl KvCaches {
    pub fn new(pool: KvPool, num_pages: usize) -> Self {
        Self {
            pool,
            allocator: PageAllocator::new(num_pages),
            sessions: HashMap::new(),
            ended: 0,
            evicted_pages: 0,
        }
    }

    pub fn stats(&self) -> CacheStats {
        CacheStats {
            total_pages: self.allocator.total(),
            free_pages: self.allocator.free(),
            evicted_pages: self.evicted_pages,
        }
    }

    pub fn pool(&mut self) -> &mut KvPool {
        &mut self.pool
    }

    /// Tokens cached of `session`.
    pub fn len(&self, session: SessionId) -> usize {
        self.sessions.get(&session).map_or(0, |cache| cache.table.len())
    }

    /// Marks `session` as having a request under way; its pages are then taken last.
    pub fn begin(&mut self, session: SessionId) {
        self.sessions.entry(session).or_default().resting_since = None;
    }

    /// Marks `session` as resting from now on.
    pub fn rest(&mut self, session: SessionId) {
        self.ended += 1;
        if let Some(cache) = self.sessions.get_mut(&session) {
            cache.resting_since = Some(self.ended);
        }
    }

    /// Forgets the tokens of `session` from `len` on.
    pub fn truncate(&mut self, session: SessionId, len: usize) {
        if let Some(cache) = self.sessions.get_mut(&session) {
            if len < cache.table.len() {
                cache.logits = None;
            }
            cache.table.truncate(len, &mut self.allocator);
        }
    }

    /// Forgets `session`.
    pub fn close(&mut self, session: SessionId) {
        self.truncate(session, 0);
        self.sessions.remove(&session);
    }

    /// Gives `to`, a new session, the cache of `from`; the pages are shared.
    pub fn fork(&mut self, from: SessionId, to: SessionId) {
        if let Some(cache) = self.sessions.get(&from) {
            let fork = SessionCache {
                table: cache.table.fork(&mut self.allocator),
                logits: cache.logits.clone(),
                resting_since: Some(self.ended),
            };
            self.sessions.insert(to, fork);
        }
    }

    /// Keeps the logits of the last cached token of `session`.
    pub fn keep_logits(&mut self, session: SessionId, row: &[f32]) {
        self.sessions.entry(session).or_default().logits = Some(row.to_vec());
    }

    /// The logits of the last cached token of `session`, when they were kept.
    pub fn take_logits(&mut self, session: SessionId) -> Option<Vec<f32>> {
        self.sessions.get_mut(&session)?.logits.take()
    }

    /// Pages that are missing to run `rows` more tokens of `session`, and pages that are free.
    pub fn missing(&self, session: SessionId, rows: usize) -> (usize, usize) {
        let missing =
            self.sessions.get(&session).map_or(0, |cache| cache.table.missing(rows, &self.allocator));
        (missing, self.allocator.free())
    }

    /// Takes the pages to run `rows` more tokens of `session`; returns the block table that covers them.
    ///
    /// # Panics
    /// When more pages are [`KvCaches::missing`] than free.
    pub fn reserve(&mut self, session: SessionId, rows: usize) -> &[PageId] {
        let cache = self.sessions.entry(session).or_default();
        cache.table.reserve(rows, &mut self.allocator, &mut self.pool);
        cache.table.covering(rows)
    }

    /// Counts `rows` more tokens of `session` as cached. Its logits were taken when the request began.
    pub fn advance(&mut self, session: SessionId, rows: usize) {
        if let Some(cache) = self.sessions.get_mut(&session) {
            cache.table.advance(rows);
        }
    }

    /// Takes the last page of the session that has rested longest; `false` when no resting session has one.
    pub fn evict_resting(&mut self) -> bool {
        let resting = self.sessions.iter().filter(|(_, cache)| cache.table.num_pages() > 0);
        let oldest = resting.filter_map(|(&session, cache)| Some((cache.resting_since?, session.0))).min();
        oldest.is_some_and(|(_, session)| self.evict(SessionId(session)))
    }

    /// Takes the last page of `session`; `false` when it has none.
    pub fn evict(&mut self, session: SessionId) -> bool {
        let num_pages = self.sessions.get(&session).map_or(0, |cache| cache.table.num_pages());
        if num_pages > 0 {
            self.truncate(session, (num_pages - 1) * PAGE_LEN);
            self.evicted_pages += 1;
        }
        num_pages > 0
    }

    /// Forgets everything cached and goes on with the pool that `make` gives. The old one is dropped first: a device
    /// need not hold both.
    ///
    /// # Errors
    /// Those of `make`; the pool is then one without layers.
    pub fn reset(&mut self, make: impl FnOnce(usize) -> lm_model::Result<KvPool>) -> lm_model::Result<()> {
        let sessions: Vec<SessionId> = self.sessions.keys().copied().collect();
        sessions.into_iter().for_each(|session| self.truncate(session, 0));
        let num_pages = self.allocator.total();
        self.pool = KvPool::empty(num_pages);
        self.pool = make(num_pages)?;
        Ok(())
    }
}
