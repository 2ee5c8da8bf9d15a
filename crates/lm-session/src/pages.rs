//! Who holds which page of the KV pool.

use lm_model::{KvPool, PAGE_LEN, PageId};

/// Hands out the pages of a [`KvPool`] and counts their holders.
#[derive(Debug)]
pub(crate) struct PageAllocator {
    /// Holders of each page; 0 = free.
    holders: Vec<u32>,
    free: Vec<PageId>,
}

impl PageAllocator {
    pub fn new(num_pages: usize) -> Self {
        Self { holders: vec![0; num_pages], free: (0..num_pages as PageId).rev().collect() }
    }

    pub fn total(&self) -> usize {
        self.holders.len()
    }

    pub fn free(&self) -> usize {
        self.free.len()
    }

    fn allocate(&mut self) -> PageId {
        let page = self.free.pop().expect("callers compare PageTable::missing with free()");
        self.holders[page as usize] = 1;
        page
    }

    fn share(&mut self, page: PageId) {
        self.holders[page as usize] += 1;
    }

    fn release(&mut self, page: PageId) {
        let holders = &mut self.holders[page as usize];
        *holders -= 1;
        if *holders == 0 {
            self.free.push(page);
        }
    }

    fn is_shared(&self, page: PageId) -> bool {
        self.holders[page as usize] > 1
    }
}

/// The block table of one session: its pages in order, and how many of their slots are filled.
///
/// A table must be given back with [`PageTable::truncate`]`(0)`; dropping it keeps the pages taken.
#[derive(Debug, Default)]
pub(crate) struct PageTable {
    pages: Vec<PageId>,
    len: usize,
}

impl PageTable {
    /// Filled slots: tokens in the cache.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn num_pages(&self) -> usize {
        self.pages.len()
    }

    /// The pages that cover the filled slots and `rows` more.
    ///
    /// # Panics
    /// When they were not reserved.
    pub fn covering(&self, rows: usize) -> &[PageId] {
        &self.pages[..(self.len + rows).div_ceil(PAGE_LEN)]
    }

    /// Pages that [`PageTable::reserve`] will take for `rows` more rows.
    pub fn missing(&self, rows: usize, allocator: &PageAllocator) -> usize {
        let growth = (self.len + rows).div_ceil(PAGE_LEN).saturating_sub(self.pages.len());
        growth + usize::from(rows > 0 && self.shared_tail(allocator).is_some())
    }

    /// Makes the slots of the next `rows` rows this table's own: new pages, and a copy of a shared one that would be
    /// written to.
    ///
    /// # Panics
    /// When fewer than [`PageTable::missing`] pages are free.
    pub fn reserve(&mut self, rows: usize, allocator: &mut PageAllocator, pool: &mut KvPool) {
        if rows == 0 {
            return;
        }
        if let Some(index) = self.shared_tail(allocator) {
            let copy = allocator.allocate();
            pool.copy_page(self.pages[index], copy);
            allocator.release(std::mem::replace(&mut self.pages[index], copy));
        }
        while self.pages.len() * PAGE_LEN < self.len + rows {
            self.pages.push(allocator.allocate());
        }
    }

    /// Counts `rows` reserved slots as filled.
    pub fn advance(&mut self, rows: usize) {
        self.len += rows;
        debug_assert!(self.len <= self.pages.len() * PAGE_LEN);
    }

    /// Forgets the slots from `len` on and releases the pages that cover none of the rest.
    pub fn truncate(&mut self, len: usize, allocator: &mut PageAllocator) {
        self.len = self.len.min(len);
        for page in self.pages.drain(self.len.div_ceil(PAGE_LEN)..) {
            allocator.release(page);
        }
    }

    /// Another table over the same pages; no copy.
    pub fn fork(&self, allocator: &mut PageAllocator) -> Self {
        let pages = self.covering(0).to_vec();
        pages.iter().for_each(|&page| allocator.share(page));
        Self { pages, len: self.len }
    }

    /// Index of the page that holds the next slot, when it is partly filled and others hold it too.
    fn shared_tail(&self, allocator: &PageAllocator) -> Option<usize> {
        let index = self.len / PAGE_LEN;
        self.pages.get(index).filter(|&&page| allocator.is_shared(page)).map(|_| index)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One random operation on one of a few tables.
    #[derive(Clone, Debug)]
    enum Operation {
        Grow(usize, usize),
        Truncate(usize, usize),
        Fork(usize, usize),
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            (0..3usize, 0..80usize).prop_map(|(table, rows)| Operation::Grow(table, rows)),
            (0..3usize, 0..120usize).prop_map(|(table, len)| Operation::Truncate(table, len)),
            (0..3usize, 0..3usize).prop_map(|(from, to)| Operation::Fork(from, to)),
        ]
    }

    #[test]
    fn a_fork_copies_the_page_it_writes_to_and_no_other() {
        let (mut allocator, mut pool) = (PageAllocator::new(8), KvPool::empty(8));
        let mut table = PageTable::default();
        table.reserve(PAGE_LEN + 5, &mut allocator, &mut pool);
        table.advance(PAGE_LEN + 5);
        let mut fork = table.fork(&mut allocator);
        assert_eq!(allocator.free(), 6);
        assert_eq!(fork.missing(1, &allocator), 1);
        fork.reserve(1, &mut allocator, &mut pool);
        assert_eq!(allocator.free(), 5);
        assert_eq!(fork.covering(1)[0], table.covering(0)[0]);
        assert_ne!(fork.covering(1)[1], table.covering(0)[1]);
        // The last holder writes in place.
        assert_eq!(table.missing(1, &allocator), 0);
    }

    proptest! {
        #[test]
        fn pages_are_held_once_per_table_and_all_come_back(
            operations in prop::collection::vec(operation(), 0..40)
        ) {
            let (mut allocator, mut pool) = (PageAllocator::new(10), KvPool::empty(10));
            let mut tables = [PageTable::default(), PageTable::default(), PageTable::default()];
            for operation in operations {
                match operation {
                    Operation::Grow(table, rows) => {
                        let missing = tables[table].missing(rows, &allocator);
                        if missing <= allocator.free() {
                            let free = allocator.free();
                            tables[table].reserve(rows, &mut allocator, &mut pool);
                            prop_assert_eq!(free - allocator.free(), missing);
                            tables[table].advance(rows);
                        }
                    }
                    Operation::Truncate(table, len) => tables[table].truncate(len, &mut allocator),
                    Operation::Fork(from, to) => {
                        let fork = tables[from].fork(&mut allocator);
                        tables[to].truncate(0, &mut allocator);
                        tables[to] = fork;
                    }
                }
                let mut holders = vec![0; 10];
                tables.iter().flat_map(|table| &table.pages).for_each(|&page| holders[page as usize] += 1);
                prop_assert_eq!(&holders, &allocator.holders);
                prop_assert_eq!(holders.iter().filter(|&&count| count == 0).count(), allocator.free());
            }
            tables.iter_mut().for_each(|table| table.truncate(0, &mut allocator));
            prop_assert_eq!(allocator.free(), allocator.total());
        }
    }
}
