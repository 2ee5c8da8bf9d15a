//! The KV pool and what it holds of each session.

use std::collections::HashMap;

use lm_model::{AdapterId, KvPool, PAGE_LEN, PageId, TokenId};

use crate::page_table::PageTable;
use crate::pages::PageStore;
use crate::prefix_tree::NodeId;
use crate::request::SessionId;
use crate::{CacheStats, PrefixCache};

/// One pool of pages, shared by all sessions.
pub(crate) struct KvCaches {
    store: PageStore,
    sessions: HashMap<SessionId, SessionCache>,
    prefix_cache: PrefixCache,
    /// Where the prefixes of all sessions start that may find each other's: those with the same adapter. What one adapter makes
    /// of a token, no other can go on from.
    common_roots: HashMap<Option<AdapterId>, NodeId>,
    /// Counts requests that ended: the clock of `resting_since`.
    ended: u64,
    evicted_pages: u64,
}

/// The cache of one session.
#[derive(Debug)]
struct SessionCache {
    adapter: Option<AdapterId>,
    table: PageTable,
    /// Logits of the last cached token, until another one follows it.
    logits: Option<Vec<f32>>,
    /// When its last request ended; `None` while one is under way.
    resting_since: Option<u64>,
}

/// Pages of one space: those that a step needs, and those that are free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortage {
    pub needed_pages: usize,
    pub free_pages: usize,
}

impl KvCaches {
    pub fn new(pool: KvPool, prefix_cache: PrefixCache) -> Self {
        let (sessions, common_roots) = (HashMap::new(), HashMap::new());
        Self { store: PageStore::new(pool), sessions, prefix_cache, common_roots, ended: 0, evicted_pages: 0 }
    }

    pub fn stats(&self) -> CacheStats {
        CacheStats {
            total_pages: self.store.total(),
            free_pages: (0..self.store.num_spaces()).map(|space| self.store.free(space)).sum(),
            findable_pages: self.store.findable(),
            evicted_pages: self.evicted_pages,
        }
    }

    pub fn pool(&mut self) -> &mut KvPool {
        self.store.pool()
    }

    /// Tokens cached of `session`.
    pub fn len(&self, session: SessionId) -> usize {
        self.sessions.get(&session).map_or(0, |cache| cache.table.len())
    }

    /// Marks `session`, which runs with this adapter, as having a request under way; its pages are then taken last.
    pub fn begin(&mut self, session: SessionId, adapter: Option<AdapterId>) {
        if !self.sessions.contains_key(&session) {
            let table = self.new_table(adapter);
            self.sessions.insert(session, SessionCache { adapter, table, logits: None, resting_since: None });
        }
        if let Some(cache) = self.sessions.get_mut(&session) {
            cache.resting_since = None;
        }
    }

    /// Marks `session` as resting from now on.
    pub fn rest(&mut self, session: SessionId) {
        self.ended += 1;
        if let Some(cache) = self.sessions.get_mut(&session) {
            cache.resting_since = Some(self.ended);
        }
    }

    /// Goes back to the last position up to `len` from which `session` can go on; returns it.
    pub fn rewind(&mut self, session: SessionId, len: usize) -> usize {
        let Some(cache) = self.sessions.get_mut(&session) else { return 0 };
        if len < cache.table.len() {
            cache.logits = None;
        }
        cache.table.rewind(len, &mut self.store);
        cache.table.len()
    }

    /// Goes to the last position from which the first tokens of `ids` can be gone on with, of which `matching` are the first
    /// that `session` has cached; what other sessions have left of the others is taken.
    pub fn resume(&mut self, session: SessionId, ids: &[TokenId], matching: usize) {
        if let Some(cache) = self.sessions.get_mut(&session) {
            cache.logits = None;
            cache.table.resume(ids, matching, &mut self.store);
        }
    }

    /// Forgets `session`.
    pub fn close(&mut self, session: SessionId) {
        if let Some(cache) = self.sessions.remove(&session) {
            cache.table.close(&mut self.store);
        }
    }

    /// Gives `to`, a new session, the cache of `from`; the pages are shared.
    pub fn fork(&mut self, from: SessionId, to: SessionId) {
        if let Some(cache) = self.sessions.get(&from) {
            let fork = SessionCache {
                adapter: cache.adapter,
                table: cache.table.fork(&mut self.store),
                logits: cache.logits.clone(),
                resting_since: Some(self.ended),
            };
            self.sessions.insert(to, fork);
        }
    }

    /// Keeps the logits of the last cached token of `session`.
    pub fn keep_logits(&mut self, session: SessionId, row: &[f32]) {
        if let Some(cache) = self.sessions.get_mut(&session) {
            cache.logits = Some(row.to_vec());
        }
    }

    /// The logits of the last cached token of `session`, when they were kept.
    pub fn take_logits(&mut self, session: SessionId) -> Option<Vec<f32>> {
        self.sessions.get_mut(&session)?.logits.take()
    }

    /// What is missing to run `rows` more tokens of `session`, in the first space that lacks pages.
    pub fn shortage(&self, session: SessionId, rows: usize) -> Option<Shortage> {
        let needed = self.sessions.get(&session)?.table.missing(rows, &self.store);
        let shortage = |(space, needed_pages)| Shortage { needed_pages, free_pages: self.store.free(space) };
        needed.into_iter().enumerate().map(shortage).find(|space| space.needed_pages > space.free_pages)
    }

    /// Takes the pages to run `rows` more tokens of `session`.
    ///
    /// # Panics
    /// When there is a [`KvCaches::shortage`].
    pub fn reserve(&mut self, session: SessionId, rows: usize) {
        if let Some(cache) = self.sessions.get_mut(&session) {
            cache.table.reserve(rows, &mut self.store);
        }
    }

    /// The block tables of `session` with `rows` more tokens, which have been reserved.
    pub fn block_tables(&self, session: SessionId, rows: usize) -> Vec<Vec<PageId>> {
        self.sessions.get(&session).map_or_else(Vec::new, |cache| cache.table.block_tables(rows))
    }

    /// Counts `rows` more tokens of `session` as cached, whose first tokens are `ids`. Its logits were taken when the request
    /// began.
    pub fn advance(&mut self, session: SessionId, ids: &[TokenId], rows: usize) {
        if let Some(cache) = self.sessions.get_mut(&session) {
            cache.table.advance(ids, rows, &mut self.store);
        }
    }

    /// Takes the last page of the session that has rested longest; `false` when no resting session has one.
    pub fn evict_resting(&mut self) -> bool {
        let resting = self.sessions.iter().filter(|(_, cache)| cache.table.num_pages() > 0);
        let oldest = resting.filter_map(|(&session, cache)| Some((cache.resting_since?, session.0))).min();
        oldest.is_some_and(|(_, session)| self.evict(SessionId(session)))
    }

    /// Takes the last pages of `session`; `false` when it has none.
    pub fn evict(&mut self, session: SessionId) -> bool {
        let num_pages = self.sessions.get(&session).map_or(0, |cache| cache.table.num_pages());
        if num_pages > 0 {
            self.rewind(session, (num_pages - 1) * PAGE_LEN);
            let left = self.sessions.get(&session).map_or(0, |cache| cache.table.num_pages());
            self.evicted_pages += (num_pages - left) as u64;
        }
        num_pages > 0
    }

    /// Forgets everything cached and goes on with the pool that `make` gives. The old one is dropped first: a device
    /// need not hold both.
    ///
    /// # Errors
    /// Those of `make`; the pool is then one without a page.
    pub fn reset(&mut self, make: impl FnOnce() -> lm_model::Result<KvPool>) -> lm_model::Result<()> {
        self.replace_pool(KvPool::empty(0));
        self.replace_pool(make()?);
        Ok(())
    }

    fn replace_pool(&mut self, pool: KvPool) {
        self.store = PageStore::new(pool);
        self.common_roots.clear();
        let sessions: Vec<_> =
            self.sessions.iter().map(|(&session, cache)| (session, cache.adapter)).collect();
        for (session, adapter) in sessions {
            let table = self.new_table(adapter);
            if let Some(cache) = self.sessions.get_mut(&session) {
                (cache.table, cache.logits) = (table, None);
            }
        }
    }

    fn new_table(&mut self, adapter: Option<AdapterId>) -> PageTable {
        match self.prefix_cache {
            PrefixCache::Engine => {
                let root = *self.common_roots.entry(adapter).or_insert_with(|| self.store.tree.new_root());
                PageTable::new(root, &mut self.store)
            }
            PrefixCache::Session => {
                let root = self.store.tree.new_root();
                let table = PageTable::new(root, &mut self.store);
                self.store.tree.release(root); // The table holds it.
                table
            }
        }
    }
}
