use lm_model::testing::FakeLm;
use lm_model::{CausalLm, KvGeometry, LayerCache};
use proptest::prelude::*;

use super::*;

const FULL: KvGeometry =
    KvGeometry { num_kv_heads: 1, head_dim: FakeLm::HEAD_DIM, window: None, shared_with: None };
const NEAR: KvGeometry = KvGeometry { window: Some(40), ..FULL };
const STATE: LayerCache = LayerCache::State { len: 3 };

fn allocator<L: Into<LayerCache>>(layers: impl IntoIterator<Item = L>, num_pages: usize) -> PageAllocator {
    PageAllocator::new(FakeLm::random(1, 4).with_layers(layers).new_cache(num_pages).unwrap())
}

/// Token ids that depend on `seed` from position 40 on, in the second page.
fn ids(seed: u32, len: usize) -> Vec<TokenId> {
    (0..len as u32).map(|i| if i < 40 { i } else { i + 1000 * seed }).collect()
}

fn free(allocator: &PageAllocator) -> usize {
    (0..allocator.num_spaces()).map(|space| allocator.free(space)).sum()
}

fn grow(table: &mut PageTable, ids: &[TokenId], allocator: &mut PageAllocator) {
    let rows = ids.len() - table.len();
    table.reserve(rows, allocator);
    table.commit_rows(ids, rows, allocator);
}

#[test]
fn fork_copies_only_the_written_page() {
    let mut allocator = allocator([FULL], 8);
    let root = allocator.tree.new_root();
    let mut table = PageTable::new(root, &mut allocator);
    grow(&mut table, &ids(0, 37), &mut allocator);
    let mut fork = table.fork(&mut allocator);
    assert_eq!(allocator.free(0), 6);
    assert_eq!(fork.missing(1, &allocator), [1]);
    fork.reserve(1, &mut allocator);
    assert_eq!(allocator.free(0), 5);
    let [pages, forked] = [&table, &fork].map(|table| table.block_tables(0).remove(0));
    assert_eq!(pages[0], forked[0]);
    assert_ne!(pages[1], forked[1]);
    // The last reference writes in place.
    assert_eq!(table.missing(1, &allocator), [0]);
}

#[test]
fn full_pages_are_found_until_evicted() {
    let mut allocator = allocator([FULL], 4);
    let root = allocator.tree.new_root();
    let mut first = PageTable::new(root, &mut allocator);
    grow(&mut first, &ids(1, 70), &mut allocator);
    let pages = first.block_tables(0).remove(0);
    first.close(&mut allocator);
    assert_eq!((allocator.free(0), allocator.evictable()), (4, 2));
    let mut second = PageTable::new(root, &mut allocator);
    second.resume(&ids(2, 70), 0, &mut allocator);
    assert_eq!((second.len(), second.block_tables(0).remove(0)), (32, vec![pages[0]]));
    // Three more pages: the ones without a key first, then the page of the other prefix.
    grow(&mut second, &ids(2, 128), &mut allocator);
    assert_eq!((allocator.free(0), allocator.evictable()), (0, 0));
    second.close(&mut allocator);
    let mut third = PageTable::new(root, &mut allocator);
    third.resume(&ids(1, 70), 0, &mut allocator);
    assert_eq!(third.len(), 32, "its second page is gone");
}

#[test]
fn rewritten_page_is_not_found() {
    let mut allocator = allocator([FULL], 1);
    let root = allocator.tree.new_root();
    let mut table = PageTable::new(root, &mut allocator);
    grow(&mut table, &ids(0, 32), &mut allocator);
    table.rewind(20, &mut allocator);
    assert_eq!((table.len(), table.missing(1, &allocator)), (20, vec![0]));
    grow(&mut table, &[&ids(0, 20)[..], &[999]].concat(), &mut allocator);
    let mut other = PageTable::new(root, &mut allocator);
    other.resume(&ids(0, 32), 0, &mut allocator);
    assert_eq!(other.len(), 0);
}

#[test]
fn window_releases_reusable_pages() {
    let mut allocator = allocator([FULL, NEAR], 16);
    let root = allocator.tree.new_root();
    let mut table = PageTable::new(root, &mut allocator);
    for len in 1..=320 {
        grow(&mut table, &ids(0, len), &mut allocator);
        let held = table.block_tables(0)[1].iter().filter(|&&page| page != NO_PAGE).count();
        assert!(held <= 3, "{held} pages for 40 slots after {len} tokens");
    }
    // Both groups share a space of 32 pages: 10 are held for all tokens, 2 for the window.
    assert_eq!(allocator.free(0), 20);
    table.rewind(100, &mut allocator);
    assert_eq!(table.len(), 96, "slots from 57 on are found again; the part of a page is not");
    let window = table.block_tables(0).remove(1);
    assert!(window[0] == NO_PAGE && window[1] != NO_PAGE && window[2] != NO_PAGE, "{window:?}");
}

#[test]
fn state_returns_to_its_snapshots() {
    let mut allocator = allocator([FULL.into(), STATE], 16);
    let root = allocator.tree.new_root();
    let mut table = PageTable::new(root, &mut allocator);
    for len in [100, 110, 140] {
        grow(&mut table, &ids(0, len), &mut allocator);
    }
    // Snapshots after 96 and 128 tokens: the last page borders within the rows.
    for (len, reached) in [(140, 140), (139, 128), (127, 96), (95, 0)] {
        let mut fork = table.fork(&mut allocator);
        fork.rewind(len, &mut allocator);
        assert_eq!(fork.len(), reached, "back to {len}");
        fork.close(&mut allocator);
    }
    let mut other = PageTable::new(root, &mut allocator);
    other.resume(&ids(0, 130), 0, &mut allocator);
    assert_eq!(other.len(), 128);
}

#[test]
fn state_inside_a_page_is_not_a_snapshot() {
    let mut allocator = allocator([STATE], 16);
    let root = allocator.tree.new_root();
    let mut table = PageTable::new(root, &mut allocator);
    for len in [20, 140] {
        grow(&mut table, &ids(0, len), &mut allocator);
    }
    // The first page holds the state after 20 tokens, not after 32.
    table.rewind(50, &mut allocator);
    assert_eq!(table.len(), 0);
}

#[test]
fn prefixes_of_another_root_are_not_found() {
    let mut allocator = allocator([FULL], 8);
    let roots = [allocator.tree.new_root(), allocator.tree.new_root()];
    let [mut one, mut two] = roots.map(|root| PageTable::new(root, &mut allocator));
    grow(&mut one, &ids(0, 64), &mut allocator);
    two.resume(&ids(0, 64), 0, &mut allocator);
    assert_eq!(two.len(), 0);
}

#[test]
fn closed_table_after_rewind_leaves_no_prefix() {
    let mut allocator = allocator([FULL], 4);
    let roots = [allocator.tree.new_root(), allocator.tree.new_root()];
    let [mut own, mut other] = roots.map(|root| PageTable::new(root, &mut allocator));
    roots.into_iter().for_each(|root| allocator.tree.release(root));
    for table in [&mut own, &mut other] {
        grow(table, &ids(0, 64), &mut allocator);
        table.rewind(0, &mut allocator);
    }
    assert_eq!((allocator.free(0), allocator.evictable()), (4, 4));
    own.close(&mut allocator);
    assert_eq!(
        (allocator.free(0), allocator.evictable(), allocator.tree.len()),
        (4, 2, 3),
        "the other's remain"
    );
    // A free page has lost its key: what is allocated takes nothing away from the other root.
    allocator.allocate(0);
    other.resume(&ids(0, 64), 0, &mut allocator);
    assert_eq!(other.len(), 64);
}

/// A random operation on one of a few tables.
#[derive(Clone, Debug)]
enum Operation {
    Grow(usize, usize),
    Rewind(usize, usize),
    /// Resumes the first tokens of one of two texts.
    Resume(usize, u32, usize),
    Fork(usize, usize),
}

fn operation() -> impl Strategy<Value = Operation> {
    let table = || 0..3usize;
    prop_oneof![
        (table(), 0..80usize).prop_map(|(table, rows)| Operation::Grow(table, rows)),
        (table(), 0..120usize).prop_map(|(table, len)| Operation::Rewind(table, len)),
        (table(), 1..3u32, 0..120usize).prop_map(|(table, text, len)| Operation::Resume(table, text, len)),
        (table(), table()).prop_map(|(from, to)| Operation::Fork(from, to)),
    ]
}

proptest! {
    #[test]
    fn pages_are_held_once_per_table_and_released(
        kinds in 0..3usize,
        operations in prop::collection::vec(operation(), 0..40),
    ) {
        let layers = [vec![FULL.into()], vec![FULL.into(), NEAR.into()], vec![NEAR.into(), STATE]];
        let mut allocator = allocator(layers[kinds].clone(), 10);
        let root = allocator.tree.new_root();
        let mut tables = [0; 3].map(|_| PageTable::new(root, &mut allocator));
        let mut texts = [0; 3];
        for operation in operations {
            match operation {
                Operation::Grow(table, rows) => {
                    let missing = tables[table].missing(rows, &allocator);
                    let free: Vec<usize> = (0..missing.len()).map(|space| allocator.free(space)).collect();
                    if missing.iter().zip(&free).all(|(missing, free)| missing <= free) {
                        tables[table].reserve(rows, &mut allocator);
                        for space in 0..missing.len() {
                            prop_assert_eq!(free[space] - allocator.free(space), missing[space]);
                        }
                        let ids = ids(texts[table], tables[table].len() + rows);
                        tables[table].commit_rows(&ids, rows, &mut allocator);
                    }
                }
                Operation::Rewind(table, len) => {
                    let before = tables[table].len();
                    tables[table].rewind(len, &mut allocator);
                    prop_assert!(tables[table].len() <= len.min(before));
                }
                Operation::Resume(table, text, len) => {
                    let matching = if texts[table] == text { usize::MAX } else { 40 };
                    texts[table] = text;
                    tables[table].resume(&ids(text, len), matching, &mut allocator);
                    prop_assert!(tables[table].len() <= len);
                }
                Operation::Fork(from, to) => {
                    let fork = tables[from].fork(&mut allocator);
                    std::mem::replace(&mut tables[to], fork).close(&mut allocator);
                    texts[to] = texts[from];
                }
            }
            let zeros = |space| vec![0; allocator.ref_counts(space).len()];
            let mut ref_counts: Vec<Vec<u32>> = (0..allocator.num_spaces()).map(zeros).collect();
            for pages in tables.iter().flat_map(|table| table.pages.iter().zip(allocator.groups())) {
                let held = pages.0.iter().filter(|&&page| page != NO_PAGE);
                held.for_each(|&page| ref_counts[pages.1.space][page as usize] += 1);
            }
            for (space, ref_counts) in ref_counts.iter().enumerate() {
                prop_assert_eq!(ref_counts, &allocator.ref_counts(space));
                prop_assert_eq!(ref_counts.iter().filter(|&&count| count == 0).count(), allocator.free(space));
            }
        }
        tables.into_iter().for_each(|table| table.close(&mut allocator));
        prop_assert_eq!(free(&allocator), allocator.total());
        // Every remaining prefix-tree node has a page, or leads to a node that has one.
        prop_assert!(allocator.evictable() > 0 || allocator.tree.len() == 1);
        allocator.release_root(root);
        prop_assert_eq!((allocator.evictable(), allocator.tree.len()), (0, 0), "nothing finds them");
        prop_assert_eq!(free(&allocator), allocator.total());
    }
}
