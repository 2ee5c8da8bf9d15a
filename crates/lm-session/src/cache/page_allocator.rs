//! Page allocator: reference counts, free lists and LRU eviction of cached pages.

use std::collections::{BTreeMap, BTreeSet};

use lm_model::{CacheGroup, KvPool, NO_PAGE, PageId};

use crate::cache::prefix_tree::{NodeId, PrefixTree};

/// Cache key of a full page: a prefix-tree node and a group. A page with a key is never written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CacheKey {
    node: NodeId,
    group: usize,
}

/// Pages of one space.
#[derive(Debug)]
struct Space {
    pages: Vec<Page>,
    /// Free pages without a key. The lowest is allocated first: pages with consecutive ids are adjacent in
    /// memory.
    free_list: BTreeSet<PageId>,
    /// Free pages with a key, by release time (LRU order).
    evictable: BTreeMap<u64, PageId>,
    /// Number of releases: the clock of `released_at`.
    releases: u64,
}

#[derive(Clone, Debug, Default)]
struct Page {
    ref_count: u32,
    key: Option<CacheKey>,
    released_at: u64,
}

impl Space {
    fn new(num_pages: usize) -> Self {
        Self {
            pages: vec![Page::default(); num_pages],
            free_list: (0..num_pages as PageId).collect(),
            evictable: BTreeMap::new(),
            releases: 0,
        }
    }

    fn free(&self) -> usize {
        self.free_list.len() + self.evictable.len()
    }

    /// Allocates a page with a reference count of 1 and no key; returns it and its previous key.
    fn allocate(&mut self) -> (PageId, Option<CacheKey>) {
        let page = self.free_list.pop_first().or_else(|| self.evictable.pop_first().map(|(_, page)| page));
        let page = page.expect("callers check for a shortage first");
        self.pages[page as usize].ref_count = 1;
        (page, self.pages[page as usize].key.take())
    }

    fn retain(&mut self, page: PageId) {
        let Page { ref_count, released_at, .. } = &mut self.pages[page as usize];
        if *ref_count == 0 {
            self.evictable.remove(released_at);
        }
        *ref_count += 1;
    }

    fn release(&mut self, page: PageId) {
        let Page { ref_count, key, released_at } = &mut self.pages[page as usize];
        *ref_count -= 1;
        if *ref_count > 0 {
        } else if key.is_none() {
            self.free_list.insert(page);
        } else {
            self.releases += 1;
            *released_at = self.releases;
            self.evictable.insert(self.releases, page);
        }
    }

    /// Takes the key of a page without references and returns true; returns false for a referenced page.
    fn forget(&mut self, page: PageId) -> bool {
        let Page { ref_count, key, released_at } = &mut self.pages[page as usize];
        let is_free = *ref_count == 0;
        if is_free {
            *key = None;
            self.evictable.remove(released_at);
            self.free_list.insert(page);
        }
        is_free
    }
}

/// Allocator of the pages of a [`KvPool`]: reference counts, and the prefix tree of full pages.
pub(crate) struct PageAllocator {
    pool: KvPool,
    groups: Vec<CacheGroup>,
    spaces: Vec<Space>,
    pub tree: PrefixTree,
}

impl PageAllocator {
    /// Creates an allocator for a new pool, with all pages free.
    pub fn new(pool: KvPool) -> Self {
        let groups = pool.layout().groups().to_vec();
        let spaces = (0..pool.layout().num_spaces()).map(|space| Space::new(pool.num_pages(space))).collect();
        Self { pool, tree: PrefixTree::new(groups.len()), groups, spaces }
    }

    pub fn pool(&mut self) -> &mut KvPool {
        &mut self.pool
    }

    /// Cache groups, in the order of the block tables.
    pub fn groups(&self) -> &[CacheGroup] {
        &self.groups
    }

    /// Number of spaces, each with its own free list.
    pub fn num_spaces(&self) -> usize {
        self.spaces.len()
    }

    /// Number of pages in all spaces.
    pub fn total(&self) -> usize {
        self.spaces.iter().map(|space| space.pages.len()).sum()
    }

    /// Number of free pages in a space.
    pub fn free(&self, space: usize) -> usize {
        self.spaces[space].free()
    }

    /// Number of free pages in the prefix tree.
    pub fn evictable(&self) -> usize {
        self.spaces.iter().map(|space| space.evictable.len()).sum()
    }

    /// Allocates a free page: preferably one without a key, otherwise the least recently released one, which
    /// is evicted.
    ///
    /// # Panics
    /// Panics if no page is free.
    pub fn allocate(&mut self, group: usize) -> PageId {
        let (page, lost) = self.space(group).allocate();
        if let Some(CacheKey { node, group }) = lost {
            self.tree.clear_page(node, group);
        }
        page
    }

    pub fn retain(&mut self, group: usize, page: PageId) {
        self.space(group).retain(page);
    }

    pub fn release(&mut self, group: usize, page: PageId) {
        self.space(group).release(page);
    }

    /// Returns true if the page's reference count is above 1.
    pub fn is_shared(&self, group: usize, page: PageId) -> bool {
        self.page(group, page).ref_count > 1
    }

    /// Returns the page to write to in place of `page`, which the caller references: a copy if the page is
    /// shared (copy-on-write), otherwise the page itself, removed from the prefix tree.
    ///
    /// # Panics
    /// Panics if a copy is needed and no page is free.
    pub fn make_exclusive(&mut self, group: usize, page: PageId) -> PageId {
        if self.is_shared(group, page) {
            let copy = self.allocate(group);
            self.pool.copy_page(self.groups[group].space, page, copy);
            self.release(group, page);
            return copy;
        }
        if let Some(CacheKey { node, group }) = self.space(group).pages[page as usize].key.take() {
            self.tree.clear_page(node, group);
        }
        page
    }

    /// Adds a full page to the prefix tree under `node`, unless the node already has a page of the group.
    pub fn cache_page(&mut self, group: usize, page: PageId, node: NodeId) {
        if self.tree.page(node, group) == NO_PAGE {
            self.tree.set_page(node, group, page);
            self.space(group).pages[page as usize].key = Some(CacheKey { node, group });
        }
    }

    /// Releases a reference to `root`. After the last one, its prefixes are no longer found and their pages
    /// are free.
    pub fn release_root(&mut self, root: NodeId) {
        if self.tree.references(root) == 1 {
            self.forget(root);
        }
        self.tree.release(root);
    }

    /// Removes unreferenced pages from the prefixes that start at `root`: they are free, and no longer found.
    /// Takes time in proportion to the pages of these prefixes.
    fn forget(&mut self, root: NodeId) {
        for (node, group, page) in self.tree.pages_of(root) {
            if self.space(group).forget(page) {
                self.tree.clear_page(node, group);
            }
        }
    }

    fn space(&mut self, group: usize) -> &mut Space {
        &mut self.spaces[self.groups[group].space]
    }

    fn page(&self, group: usize, page: PageId) -> &Page {
        &self.spaces[self.groups[group].space].pages[page as usize]
    }

    /// Reference count of each page of a space.
    #[cfg(test)]
    pub fn ref_counts(&self, space: usize) -> Vec<u32> {
        self.spaces[space].pages.iter().map(|page| page.ref_count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a space of allocated pages, each with a key.
    fn keyed(num_pages: usize) -> Space {
        let mut tree = PrefixTree::new(1);
        let node = tree.new_root();
        let mut space = Space::new(num_pages);
        for _ in 0..num_pages {
            let (page, _) = space.allocate();
            space.pages[page as usize].key = Some(CacheKey { node, group: 0 });
        }
        space
    }

    #[test]
    fn least_recently_released_page_is_reused_first() {
        let mut space = keyed(4);
        [2, 0, 3, 1].into_iter().for_each(|page| space.release(page));
        // Found and released again: it is the most recently released one now.
        space.retain(0);
        space.release(0);
        let reused: Vec<PageId> = (0..4).map(|_| space.allocate().0).collect();
        assert_eq!(reused, [2, 3, 1, 0]);
    }

    #[test]
    fn page_without_a_key_is_reused_first() {
        let mut space = keyed(3);
        space.pages[1].key = None;
        [0, 1, 2].into_iter().for_each(|page| space.release(page));
        let (first, lost) = space.allocate();
        assert_eq!((first, lost), (1, None));
        assert!(space.allocate().1.is_some());
    }

    #[test]
    fn lowest_free_page_is_allocated_first() {
        let mut space = Space::new(5);
        let pages: Vec<PageId> = (0..4).map(|_| space.allocate().0).collect();
        assert_eq!(pages, [0, 1, 2, 3]);
        [1, 3, 2].into_iter().for_each(|page| space.release(page));
        let pages: Vec<PageId> = (0..4).map(|_| space.allocate().0).collect();
        assert_eq!(pages, [1, 2, 3, 4], "consecutive ids, whatever the order of the releases");
    }

    #[test]
    fn root_pages_are_freed_with_its_last_reference() {
        let mut allocator = PageAllocator::new(KvPool::empty(2));
        let root = allocator.tree.new_root();
        let node = allocator.tree.child(root, &[1; lm_model::PAGE_LEN]);
        let page = allocator.allocate(0);
        allocator.cache_page(0, page, node);
        allocator.release(0, page);
        allocator.tree.retain(root);
        allocator.release_root(root);
        assert_eq!((allocator.free(0), allocator.evictable()), (2, 1), "found from the other reference");
        allocator.release_root(root);
        assert_eq!((allocator.free(0), allocator.evictable()), (2, 0));
    }
}
