//! Page table of one session.

use lm_model::{CacheGroup, NO_PAGE, PAGE_LEN, PageId, Retention};
use lm_tokenizer::TokenId;

use crate::cache::page_allocator::PageAllocator;
use crate::cache::prefix_tree::NodeId;

/// Block tables of one session, one for each group of the cache, and their length in tokens.
///
/// A table must be closed with [`PageTable::close`]; dropping it leaks its page references.
#[derive(Debug)]
pub(crate) struct PageTable {
    /// Page ids by group; [`NO_PAGE`] for unneeded pages.
    pages: Vec<Vec<PageId>>,
    len: usize,
    /// Number of rows after `len` whose pages are reserved.
    reserved: usize,
    root: NodeId,
    /// Prefix-tree node of the full pages.
    last_node: NodeId,
}

/// Sources of resumable pages: the table's own first tokens, and nodes of the prefix tree.
struct Sources<'a> {
    /// Number of the table's own first tokens that are valid.
    own: usize,
    /// Prefix-tree nodes of one, two, ... pages.
    path: &'a [NodeId],
}

impl PageTable {
    /// Creates an empty table whose prefixes start at `root`.
    pub fn new(root: NodeId, allocator: &mut PageAllocator) -> Self {
        allocator.tree.retain(root);
        allocator.tree.retain(root);
        Self { pages: vec![Vec::new(); allocator.groups().len()], len: 0, reserved: 0, root, last_node: root }
    }

    /// Number of cached tokens.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Length of the longest block table, in pages.
    pub fn num_pages(&self) -> usize {
        self.pages.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Number of rows after the cached tokens whose pages are reserved.
    pub fn reserved(&self) -> usize {
        self.reserved
    }

    /// Block tables for the cached tokens and `rows` more reserved ones.
    pub fn block_tables(&self, rows: usize) -> Vec<Vec<PageId>> {
        let end = (self.len + rows).div_ceil(PAGE_LEN);
        self.pages.iter().map(|pages| pages[..end].to_vec()).collect()
    }

    /// Number of pages per space that [`PageTable::reserve`] will allocate for `rows` more rows.
    pub fn missing(&self, rows: usize, allocator: &PageAllocator) -> Vec<usize> {
        let mut missing = vec![0; allocator.num_spaces()];
        for (group, kind) in allocator.groups().iter().enumerate() {
            let takes = |&index: &usize| {
                let page = self.page(group, index);
                page == NO_PAGE || allocator.is_shared(group, page)
            };
            missing[kind.space] += kind.retention.written(self.len, rows).filter(takes).count();
        }
        missing
    }

    /// Makes the pages that the next `rows` rows write to exclusive: allocates new ones and copies shared
    /// ones (copy-on-write).
    ///
    /// # Panics
    /// Panics if fewer pages are free than are [`PageTable::missing`].
    pub fn reserve(&mut self, rows: usize, allocator: &mut PageAllocator) {
        self.reserved = rows;
        for group in 0..self.pages.len() {
            for index in allocator.groups()[group].retention.written(self.len, rows) {
                let page = match self.page(group, index) {
                    NO_PAGE => allocator.allocate(group),
                    page => allocator.make_exclusive(group, page),
                };
                if index >= self.pages[group].len() {
                    self.pages[group].resize(index + 1, NO_PAGE);
                }
                self.pages[group][index] = page;
            }
        }
    }

    /// Marks the first `rows` reserved rows as cached, adds full pages to the prefix tree under `ids` — all
    /// tokens of the session up to them — and releases pages that no later token needs.
    pub fn commit_rows(&mut self, ids: &[TokenId], rows: usize, allocator: &mut PageAllocator) {
        let before = self.len;
        self.len += rows;
        self.reserved = self.reserved.saturating_sub(rows);
        let (full, _) = ids[..self.len].as_chunks::<PAGE_LEN>();
        for (index, ids) in full.iter().enumerate().skip(before / PAGE_LEN) {
            let node = allocator.tree.child(self.last_node, ids);
            self.set_last_node(node, allocator);
            for group in 0..self.pages.len() {
                let mut written = allocator.groups()[group].retention.written(before, rows);
                if written.any(|written| written == index) {
                    allocator.cache_page(group, self.pages[group][index], node);
                }
            }
        }
        for (group, pages) in self.pages.iter_mut().enumerate() {
            let retention = allocator.groups()[group].retention;
            let unneeded = retention.first_retained_page(before)
                ..retention.first_retained_page(self.len).min(pages.len());
            for page in &mut pages[unneeded] {
                if *page != NO_PAGE {
                    allocator.release(group, std::mem::replace(page, NO_PAGE));
                }
            }
        }
    }

    /// Moves to the largest resumable position of `ids`, at most to their end.
    ///
    /// The first `matching` of `ids` are this table's own first tokens. Others are reused if the allocator's
    /// prefix tree has them.
    pub fn resume(&mut self, ids: &[TokenId], matching: usize, allocator: &mut PageAllocator) {
        let path = allocator.tree.walk(self.root, ids);
        self.go_to(ids.len(), &Sources { own: matching.min(self.len), path: &path }, allocator);
    }

    /// Truncates to the largest resumable position ≤ `len`.
    pub fn rewind(&mut self, len: usize, allocator: &mut PageAllocator) {
        let path = allocator.tree.path(self.last_node);
        self.go_to(len, &Sources { own: self.len, path: &path }, allocator);
    }

    /// Creates another table over the same pages, without a copy.
    pub fn fork(&self, allocator: &mut PageAllocator) -> Self {
        allocator.tree.retain(self.root);
        allocator.tree.retain(self.last_node);
        let pages = self.block_tables(0);
        retain_all(&pages, allocator);
        Self { pages, reserved: 0, ..*self }
    }

    /// Releases all pages and prefix-tree nodes. Pages of a root without other tables are free at once, not
    /// only reusable.
    pub fn close(mut self, allocator: &mut PageAllocator) {
        let pages = std::mem::take(&mut self.pages);
        release_all(&pages, allocator);
        allocator.tree.release(self.last_node);
        allocator.release_root(self.root);
    }

    /// Bytes of the pages of a table with `len` tokens; `None` if pages cannot be read.
    pub fn saved_bytes(len: usize, allocator: &mut PageAllocator) -> Option<usize> {
        let groups = allocator.groups().to_vec();
        let bytes = |group: &CacheGroup| {
            Some(needed(group, len).len() * allocator.pool().readable_page_bytes(group.space)?)
        };
        groups.iter().map(bytes).sum()
    }

    /// Copies the pages that the cached tokens need, group by group.
    pub fn save(&self, allocator: &mut PageAllocator) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::saved_bytes(self.len, allocator).unwrap_or(0));
        let groups = allocator.groups().to_vec();
        for (group, pages) in groups.iter().zip(&self.pages) {
            for index in needed(group, self.len) {
                let slots = (self.len - index * PAGE_LEN).min(PAGE_LEN);
                allocator.pool().read_page(group.space, pages[index], slots, &mut bytes);
            }
        }
        bytes
    }

    /// Adds the prefixes of `ids` to the prefix tree, and takes their cached pages. Returns the number of
    /// pages of each space that [`PageTable::restore`] will allocate. The table must be empty.
    pub fn begin_restore(&mut self, ids: &[TokenId], allocator: &mut PageAllocator) -> Vec<usize> {
        let (full, _) = ids.as_chunks::<PAGE_LEN>();
        for ids in full {
            let node = allocator.tree.child(self.last_node, ids);
            self.set_last_node(node, allocator);
        }
        let path = allocator.tree.path(self.last_node);
        let mut missing = vec![0; allocator.num_spaces()];
        for (group, kind) in allocator.groups().to_vec().iter().enumerate() {
            for index in needed(kind, ids.len()) {
                let known = path.get(index).map_or(NO_PAGE, |&node| allocator.tree.page(node, group));
                self.pages[group].resize(index, NO_PAGE);
                self.pages[group].push(known);
                match known {
                    NO_PAGE => missing[kind.space] += 1,
                    page => allocator.retain(group, page),
                }
            }
        }
        missing
    }

    /// Fills the pages that are missing since [`PageTable::begin_restore`] with the bytes of
    /// [`PageTable::save`], and caches `ids`.
    ///
    /// # Panics
    /// When pages or bytes are missing.
    pub fn restore(&mut self, ids: &[TokenId], mut bytes: &[u8], allocator: &mut PageAllocator) {
        let path = allocator.tree.path(self.last_node);
        for (group, kind) in allocator.groups().to_vec().iter().enumerate() {
            let page_bytes = allocator.pool().readable_page_bytes(kind.space).unwrap_or(0);
            for index in needed(kind, ids.len()) {
                let (page, rest) = bytes.split_at(page_bytes);
                bytes = rest;
                if self.pages[group][index] == NO_PAGE {
                    let id = allocator.allocate(group);
                    allocator.pool().write_page(kind.space, id, page);
                    self.pages[group][index] = id;
                    if let Some(&node) = path.get(index) {
                        allocator.cache_page(group, id, node);
                    }
                }
            }
        }
        self.len = ids.len();
    }

    fn go_to(&mut self, limit: usize, sources: &Sources<'_>, allocator: &mut PageAllocator) {
        let own = sources.own.min(limit);
        let known = sources.path.len().max(own / PAGE_LEN).min(limit / PAGE_LEN);
        let mut positions: Vec<usize> = (0..=known).map(|pages| pages * PAGE_LEN).collect();
        positions.push(own);
        positions.sort_unstable();
        let resumable = |&len: &usize| self.tables_at(len, sources, allocator).map(|tables| (len, tables));
        let found = positions.iter().rev().find_map(resumable);
        let (len, pages) = found.expect("position 0 needs no pages");
        // Retained before the old ones are released, so that no page is reused in between.
        retain_all(&pages, allocator);
        release_all(&std::mem::replace(&mut self.pages, pages), allocator);
        (self.len, self.reserved) = (len, 0);
        let last_node = (len / PAGE_LEN).checked_sub(1).map_or(self.root, |last| sources.path[last]);
        self.set_last_node(last_node, allocator);
    }

    /// Block tables for resuming after `len` tokens, if all pages needed are available.
    fn tables_at(
        &self,
        len: usize,
        sources: &Sources<'_>,
        allocator: &PageAllocator,
    ) -> Option<Vec<Vec<PageId>>> {
        let table = |group: usize| {
            let needed = allocator.groups()[group].retention.first_retained_page(len)..len.div_ceil(PAGE_LEN);
            let mut table = vec![NO_PAGE; needed.start.min(needed.end)];
            for index in needed {
                table.push(self.page_at(group, index, len, sources, allocator)?);
            }
            Some(table)
        };
        (0..self.pages.len()).map(table).collect()
    }

    /// Page of a table with `len` tokens at `index`: this table's own, or one from the prefix tree.
    fn page_at(
        &self,
        group: usize,
        index: usize,
        len: usize,
        sources: &Sources<'_>,
        allocator: &PageAllocator,
    ) -> Option<PageId> {
        let end = (index + 1) * PAGE_LEN;
        let own = match allocator.groups()[group].retention {
            // The page holds the state after the table's last token only.
            Retention::State => len == self.len && len <= sources.own,
            Retention::All | Retention::Window(_) => end.min(len) <= sources.own,
        };
        let own = if own { self.page(group, index) } else { NO_PAGE };
        let known = || match sources.path.get(index) {
            Some(&node) if end <= len => allocator.tree.page(node, group),
            _ => NO_PAGE,
        };
        Some(if own == NO_PAGE { known() } else { own }).filter(|&page| page != NO_PAGE)
    }

    fn page(&self, group: usize, index: usize) -> PageId {
        self.pages[group].get(index).copied().unwrap_or(NO_PAGE)
    }

    fn set_last_node(&mut self, last_node: NodeId, allocator: &mut PageAllocator) {
        allocator.tree.retain(last_node);
        allocator.tree.release(std::mem::replace(&mut self.last_node, last_node));
    }
}

/// Indices of the pages that a group needs to continue after `len` tokens.
fn needed(group: &CacheGroup, len: usize) -> std::ops::Range<usize> {
    let end = len.div_ceil(PAGE_LEN);
    group.retention.first_retained_page(len).min(end)..end
}

fn retain_all(tables: &[Vec<PageId>], allocator: &mut PageAllocator) {
    for (group, table) in tables.iter().enumerate() {
        table.iter().filter(|&&page| page != NO_PAGE).for_each(|&page| allocator.retain(group, page));
    }
}

/// Releases the last pages first: a prefix is useful without its continuation, not vice versa.
fn release_all(tables: &[Vec<PageId>], allocator: &mut PageAllocator) {
    for (group, table) in tables.iter().enumerate() {
        table.iter().rev().filter(|&&page| page != NO_PAGE).for_each(|&page| allocator.release(group, page));
    }
}

#[cfg(test)]
mod tests;
