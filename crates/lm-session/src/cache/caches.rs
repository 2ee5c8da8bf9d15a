//! KV page pool and the KV cache of each session.

use std::collections::HashMap;

use lm_model::{KvPool, PAGE_LEN, PageId, Retention};
use lm_tokenizer::TokenId;

use crate::cache::page_allocator::PageAllocator;
use crate::cache::page_table::PageTable;
use crate::cache::prefix_tree::NodeId;
use crate::error::{Error, Result};
use crate::ids::{AdapterId, SessionId};
use crate::metrics::CacheStats;
use crate::params::PrefixCache;
use crate::saved::SavedPages;

/// KV cache of all sessions, over one page pool.
pub(crate) struct KvCaches {
    allocator: PageAllocator,
    sessions: HashMap<SessionId, SessionCache>,
    prefix_cache: PrefixCache,
    /// Prefix-tree roots shared between sessions, one for each adapter: the KV entries that one adapter
    /// computes are invalid for another.
    common_roots: HashMap<Option<AdapterId>, NodeId>,
    /// Number of requests that ended: the clock of `idle_since`.
    ended: u64,
    evicted_pages: u64,
}

/// KV cache of one session.
#[derive(Debug)]
struct SessionCache {
    adapter: Option<AdapterId>,
    table: PageTable,
    /// Logits of the last cached token, if kept.
    logits: Option<Vec<f32>>,
    /// Value of `ended` when the last request ended; `None` while a request is active.
    idle_since: Option<u64>,
}

/// Shortage of pages in one space: needed by a step, and free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortage {
    pub needed_pages: usize,
    pub free_pages: usize,
}

impl KvCaches {
    pub fn new(pool: KvPool, prefix_cache: PrefixCache) -> Self {
        let (sessions, common_roots) = (HashMap::new(), HashMap::new());
        Self {
            allocator: PageAllocator::new(pool),
            sessions,
            prefix_cache,
            common_roots,
            ended: 0,
            evicted_pages: 0,
        }
    }

    pub fn stats(&self) -> CacheStats {
        CacheStats {
            total_pages: self.allocator.total(),
            free_pages: (0..self.allocator.num_spaces()).map(|space| self.allocator.free(space)).sum(),
            reusable_pages: self.allocator.evictable(),
            evicted_pages: self.evicted_pages,
        }
    }

    pub fn pool(&mut self) -> &mut KvPool {
        self.allocator.pool()
    }

    /// Returns true if sessions reuse each other's pages.
    pub fn shares_prefixes(&self) -> bool {
        self.prefix_cache == PrefixCache::Engine
    }

    /// Number of cached tokens of `session`.
    pub fn len(&self, session: SessionId) -> usize {
        self.sessions.get(&session).map_or(0, |cache| cache.table.len())
    }

    /// Marks `session`, which runs with `adapter`, as active: its pages are evicted last. Pages of another
    /// adapter are dropped.
    pub fn begin(&mut self, session: SessionId, adapter: Option<AdapterId>) {
        if self.sessions.get(&session).is_some_and(|cache| cache.adapter != adapter) {
            self.close(session);
        }
        if !self.sessions.contains_key(&session) {
            let table = self.new_table(adapter);
            self.sessions.insert(session, SessionCache { adapter, table, logits: None, idle_since: None });
        }
        if let Some(cache) = self.sessions.get_mut(&session) {
            cache.idle_since = None;
        }
    }

    /// Marks `session` as idle.
    pub fn mark_idle(&mut self, session: SessionId) {
        self.ended += 1;
        if let Some(cache) = self.sessions.get_mut(&session) {
            cache.idle_since = Some(self.ended);
        }
    }

    /// Truncates `session` to its largest resumable position ≤ `len` and returns that position.
    pub fn rewind(&mut self, session: SessionId, len: usize) -> usize {
        let Some(cache) = self.sessions.get_mut(&session) else { return 0 };
        if len < cache.table.len() {
            cache.logits = None;
        }
        cache.table.rewind(len, &mut self.allocator);
        cache.table.len()
    }

    /// Moves `session` to the largest resumable position of `ids`, and reuses pages cached by other sessions.
    /// The session's own cache matches the first `matching` of `ids`.
    pub fn resume(&mut self, session: SessionId, ids: &[TokenId], matching: usize) {
        if let Some(cache) = self.sessions.get_mut(&session) {
            cache.logits = None;
            cache.table.resume(ids, matching, &mut self.allocator);
        }
    }

    /// Drops the cache of `session`.
    pub fn close(&mut self, session: SessionId) {
        if let Some(cache) = self.sessions.remove(&session) {
            cache.table.close(&mut self.allocator);
        }
    }

    /// Drops the caches and prefixes of all sessions with `adapter`, which must have no active request.
    pub fn drop_adapter(&mut self, adapter: AdapterId) {
        let uses = |cache: &SessionCache| cache.adapter == Some(adapter);
        let sessions = self.sessions.iter().filter(|(_, cache)| uses(cache));
        let sessions: Vec<SessionId> = sessions.map(|(&session, _)| session).collect();
        sessions.into_iter().for_each(|session| self.close(session));
        if let Some(root) = self.common_roots.remove(&Some(adapter)) {
            self.allocator.release_root(root);
        }
    }

    /// Gives the new session `to` a copy of the cache of `from`; the pages are shared.
    pub fn fork(&mut self, from: SessionId, to: SessionId) {
        if let Some(cache) = self.sessions.get(&from) {
            let fork = SessionCache {
                adapter: cache.adapter,
                table: cache.table.fork(&mut self.allocator),
                logits: cache.logits.clone(),
                idle_since: Some(self.ended),
            };
            self.sessions.insert(to, fork);
        }
    }

    /// Copies the pages of the first `len` tokens of `session`, as far as they are cached, if they take at
    /// most `max_bytes`.
    pub fn save(&mut self, session: SessionId, len: usize, max_bytes: usize) -> SavedPages {
        let Some(cache) = self.sessions.get(&session) else { return SavedPages::NothingCached };
        // A copy: the session itself may hold more tokens, of a reply that is being read.
        let mut table = cache.table.fork(&mut self.allocator);
        table.rewind(len, &mut self.allocator);
        let tokens = table.len();
        let saved = match PageTable::saved_bytes(tokens, &mut self.allocator) {
            _ if tokens == 0 => SavedPages::NothingCached,
            None => SavedPages::NotInHostMemory,
            Some(bytes) if bytes > max_bytes => SavedPages::TooLarge { bytes },
            Some(_) => SavedPages::Saved { tokens, pages: table.save(&mut self.allocator) },
        };
        table.close(&mut self.allocator);
        saved
    }

    /// Replaces the cache of the idle session `session` by `ids` with the saved `pages`. Returns false, and
    /// leaves the session empty, if the pool lacks pages although all idle sessions were evicted.
    ///
    /// # Errors
    /// [`Error::SavedPages`]; the caches are unchanged.
    pub fn restore(
        &mut self,
        session: SessionId,
        adapter: Option<AdapterId>,
        ids: &[TokenId],
        pages: &[u8],
    ) -> Result<bool> {
        let expected = PageTable::saved_bytes(ids.len(), &mut self.allocator);
        if expected != Some(pages.len()) {
            let (tokens, found_bytes) = (ids.len(), pages.len());
            return Err(Error::SavedPages { tokens, expected_bytes: expected, found_bytes });
        }
        self.close(session);
        self.begin(session, adapter);
        self.mark_idle(session);
        let mut table = self.new_table(adapter);
        let missing = table.begin_restore(ids, &mut self.allocator);
        let lacks = |caches: &Self| {
            missing.iter().enumerate().any(|(space, &missing)| missing > caches.allocator.free(space))
        };
        while lacks(self) {
            if !self.evict_idle() {
                table.close(&mut self.allocator);
                return Ok(false);
            }
        }
        table.restore(ids, pages, &mut self.allocator);
        if let Some(cache) = self.sessions.get_mut(&session) {
            std::mem::replace(&mut cache.table, table).close(&mut self.allocator);
        }
        Ok(true)
    }

    /// Stores the logits of the last cached token of `session`.
    pub fn keep_logits(&mut self, session: SessionId, row: &[f32]) {
        if let Some(cache) = self.sessions.get_mut(&session) {
            cache.logits = Some(row.to_vec());
        }
    }

    /// Takes the logits of the last cached token of `session`, if kept.
    pub fn take_logits(&mut self, session: SessionId) -> Option<Vec<f32>> {
        self.sessions.get_mut(&session)?.logits.take()
    }

    /// Returns the page shortage for `rows` more tokens of `session`, in the first space that lacks pages.
    pub fn shortage(&self, session: SessionId, rows: usize) -> Option<Shortage> {
        let needed = self.sessions.get(&session)?.table.missing(rows, &self.allocator);
        let shortage =
            |(space, needed_pages)| Shortage { needed_pages, free_pages: self.allocator.free(space) };
        needed.into_iter().enumerate().map(shortage).find(|space| space.needed_pages > space.free_pages)
    }

    /// Reserves the pages for `rows` more tokens of `session`.
    ///
    /// # Panics
    /// Panics if there is a [`KvCaches::shortage`].
    pub fn reserve(&mut self, session: SessionId, rows: usize) {
        if let Some(cache) = self.sessions.get_mut(&session) {
            cache.table.reserve(rows, &mut self.allocator);
        }
    }

    /// Block tables of `session` with `rows` more tokens, which must have been reserved.
    pub fn block_tables(&self, session: SessionId, rows: usize) -> Vec<Vec<PageId>> {
        self.sessions.get(&session).map_or_else(Vec::new, |cache| cache.table.block_tables(rows))
    }

    /// Marks `rows` reserved tokens of `session` as cached; `ids` starts with all its tokens up to them. Its
    /// stored logits were taken when the request began.
    pub fn commit_rows(&mut self, session: SessionId, ids: &[TokenId], rows: usize) {
        if let Some(cache) = self.sessions.get_mut(&session) {
            cache.table.commit_rows(ids, rows, &mut self.allocator);
        }
    }

    /// Marks as cached the draft rows that `session` has run and whose tokens were accepted: those of
    /// `ids[from..to]`. Does nothing if the session has lost pages since: they run again.
    pub fn commit_drafts(&mut self, session: SessionId, ids: &[TokenId], from: usize, to: usize) {
        if let Some(cache) = self.sessions.get_mut(&session)
            && cache.table.len() == from
            && cache.table.reserved() >= to - from
        {
            cache.table.commit_rows(ids, to - from, &mut self.allocator);
        }
    }

    /// Returns true if rows can be dropped after they were run: no layer has a recurrent state.
    pub fn can_roll_back(&self) -> bool {
        self.allocator.groups().iter().all(|group| group.retention != Retention::State)
    }

    /// Evicts the last pages of the session that has been idle longest; returns false if no idle session has
    /// a page.
    pub fn evict_idle(&mut self) -> bool {
        let idle = self.sessions.iter().filter(|(_, cache)| cache.table.num_pages() > 0);
        let oldest = idle.filter_map(|(&session, cache)| Some((cache.idle_since?, session.0))).min();
        oldest.is_some_and(|(_, session)| self.evict(SessionId(session)))
    }

    /// Evicts the last pages of `session`, down to its last resumable page border; returns false if it has
    /// none.
    pub fn evict(&mut self, session: SessionId) -> bool {
        let num_pages = self.sessions.get(&session).map_or(0, |cache| cache.table.num_pages());
        if num_pages > 0 {
            self.rewind(session, (num_pages - 1) * PAGE_LEN);
            let left = self.sessions.get(&session).map_or(0, |cache| cache.table.num_pages());
            self.evicted_pages += (num_pages - left) as u64;
        }
        num_pages > 0
    }

    /// Empties all caches and continues with a new pool from `make`. The old pool is dropped first, so that a
    /// device never holds both.
    ///
    /// # Errors
    /// The errors of `make`; the pool then has no pages.
    pub fn reset(&mut self, make: impl FnOnce() -> lm_model::Result<KvPool>) -> lm_model::Result<()> {
        self.replace_pool(KvPool::empty(0));
        self.replace_pool(make()?);
        Ok(())
    }

    fn replace_pool(&mut self, pool: KvPool) {
        self.allocator = PageAllocator::new(pool);
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
                let root =
                    *self.common_roots.entry(adapter).or_insert_with(|| self.allocator.tree.new_root());
                PageTable::new(root, &mut self.allocator)
            }
            PrefixCache::Session => {
                let root = self.allocator.tree.new_root();
                let table = PageTable::new(root, &mut self.allocator);
                self.allocator.tree.release(root); // The table has its own reference.
                table
            }
        }
    }
}
