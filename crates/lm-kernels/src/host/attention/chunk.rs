//! Attention of a tile of queries to one chunk of slots.

// Loops over registers are plain indexed loops: closures are compiled with the target features of their
// caller only if the compiler happens to inline them.
#![allow(clippy::needless_range_loop)]

use std::ops::Range;

use super::super::lanes::{LANES, Lanes, Line, exp, prefetch_to_l2};
use super::super::page_id::{PAGE_LEN, PageId};
use super::super::pages::{Element, Pages};
use super::AttentionSpec;

/// Slots of a chunk. Chunks are aligned to multiples of it in the sequence, whatever rows a call has.
pub(super) const CHUNK: usize = 256;

/// Queries of a task: some rows of a sequence, with the query heads that share one KV head.
pub(super) struct Queries<'a> {
    /// By row and head.
    pub heads: Vec<&'a [f32]>,
    /// Range of slots visible to each of them.
    pub visible: Vec<Range<usize>>,
}

/// Unnormalised softmax over some slots: `Σ weight · value` with `weight = exp(score - max)`, and the sum
/// of the weights.
#[derive(Clone, Debug, Default)]
pub(super) struct Partial {
    /// By query; -∞ for a query that sees no slot.
    pub max: Vec<f32>,
    /// By query.
    pub sum: Vec<f32>,
    /// `[queries, width]`.
    pub values: Vec<f32>,
}

impl Partial {
    /// Resets to the result over an empty range.
    pub fn reset(&mut self, queries: usize, width: usize) {
        self.max.clear();
        self.max.resize(queries, f32::NEG_INFINITY);
        self.sum.clear();
        self.sum.resize(queries, 0.0);
        self.values.clear();
        self.values.resize(queries * width, 0.0);
    }

    /// Merges the slots of `next`, which follow all merged slots (online softmax).
    #[inline(always)]
    pub fn merge<V: Lanes>(&mut self, next: &Partial) {
        let width = self.values.len().checked_div(self.max.len()).unwrap_or(0);
        for query in 0..self.max.len() {
            if next.max[query] == f32::NEG_INFINITY {
                continue;
            }
            let max = self.max[query].max(next.max[query]);
            let (before, after) = (exp(self.max[query] - max), exp(next.max[query] - max));
            self.max[query] = max;
            self.sum[query] = next.sum[query].mul_add(after, self.sum[query] * before);
            let (before, after) = (V::splat(before), V::splat(after));
            let values = self.values[query * width..(query + 1) * width].as_chunks_mut::<LANES>().0;
            let next = next.values[query * width..(query + 1) * width].as_chunks::<LANES>().0;
            for (value, next) in values.iter_mut().zip(next) {
                V::load(next).mul_add(after, V::load(value).mul(before)).store(value);
            }
        }
    }
}

/// Some slots of one chunk, of one KV head.
pub(super) struct Chunk<'a> {
    pub block_table: &'a [PageId],
    pub kv_head: usize,
    pub slots: Range<usize>,
}

impl Chunk<'_> {
    /// First slot of the chunk.
    fn start(&self) -> usize {
        self.slots.start / CHUNK * CHUNK
    }

    /// End of the slots, counted from the first slot of the chunk.
    pub fn end(&self) -> usize {
        self.slots.end - self.start()
    }

    /// Slots of the pages, counted from the first slot of the chunk.
    pub fn places(&self) -> Range<usize> {
        let start = self.start();
        self.slots.start / PAGE_LEN * PAGE_LEN - start..self.slots.end.next_multiple_of(PAGE_LEN) - start
    }

    /// True if its pages have consecutive ids and so are adjacent in memory, except at the end of a group of
    /// pages: the hardware prefetcher follows them.
    fn is_adjacent(&self) -> bool {
        let pages = &self.block_table[self.slots.start / PAGE_LEN..self.slots.end.div_ceil(PAGE_LEN)];
        pages.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]))
    }

    /// The pages, with the place of their first slot.
    pub fn pages(&self) -> impl Iterator<Item = ChunkPage> {
        let is_adjacent = self.is_adjacent();
        let (start, last) = (self.start(), self.block_table.len() - 1);
        let page = move |index: usize| self.block_table[index.min(last)];
        (self.slots.start / PAGE_LEN..self.slots.end.div_ceil(PAGE_LEN)).map(move |index| ChunkPage {
            place: index * PAGE_LEN - start,
            page: page(index),
            next: page(index + 1),
            of_next_chunk: page(index + CHUNK / PAGE_LEN),
            is_adjacent,
        })
    }
}

/// A page of a chunk, and pages that are read soon; past the end of the sequence, its last page is used.
pub(super) struct ChunkPage {
    /// First slot, counted from that of the chunk.
    pub place: usize,
    pub page: PageId,
    pub next: PageId,
    /// The page at this place in the next chunk.
    pub of_next_chunk: PageId,
    /// [`Chunk::is_adjacent`].
    is_adjacent: bool,
}

/// Products with the keys and the values of a chunk, by element type of the pages.
pub(super) trait Attend: Element {
    /// Computes the scores of the queries for the slots of `chunk`; those of other slots of its pages are
    /// arbitrary.
    fn score_chunk<V: Lanes>(
        queries: &Queries<'_>,
        pages: &Pages<Self>,
        chunk: &Chunk<'_>,
        scale: f32,
        scores: &mut [[f32; CHUNK]],
    );

    /// Adds the values of a chunk times their weights, which are 0 for slots not visible.
    fn add_chunk<V: Lanes>(
        weights: &mut [[f32; CHUNK]],
        pages: &Pages<Self>,
        chunk: &Chunk<'_>,
        out: &mut Partial,
    );
}

/// Computes the attention of the queries to some slots into `out`; `scores` is scratch space.
#[inline(always)]
pub(super) fn attend_chunk<V: Lanes, E: Attend>(
    queries: &Queries<'_>,
    pages: &Pages<E>,
    chunk: &Chunk<'_>,
    spec: &AttentionSpec,
    scores: &mut Vec<[f32; CHUNK]>,
    out: &mut Partial,
) {
    let count = queries.heads.len();
    out.reset(count, pages.width());
    scores.resize(count.max(scores.len()), [0.0; CHUNK]);
    let scores = &mut scores[..count];
    E::score_chunk::<V>(queries, pages, chunk, spec.scale, scores);
    let (start, places, slots) = (chunk.start(), chunk.places(), &chunk.slots);
    for (query, scores) in scores.iter_mut().enumerate() {
        let visible = &queries.visible[query];
        let seen = visible.start.max(slots.start)..visible.end.min(slots.end);
        if seen.is_empty() {
            scores[places.clone()].fill(0.0);
            continue;
        }
        let seen = seen.start - start..seen.end - start;
        (out.max[query], out.sum[query]) =
            softmax_weights::<V>(&mut scores[places.clone()], places.start, seen, spec.soft_cap);
    }
    E::add_chunk::<V>(scores, pages, chunk, out);
}

/// Query count up to which a page is memory-bound, not compute-bound.
const FEW_QUERIES: usize = 4;

impl ChunkPage {
    /// Prefetches of `elements`, which are read soon. Adjacent pages of floats need none with AVX-512; with
    /// narrower registers a line takes longer, and the hardware prefetcher falls behind.
    #[inline(always)]
    pub fn prefetch<'a, V: Lanes, E: Element>(&self, elements: &'a [E]) -> Prefetch<'a, E> {
        Prefetch { place: &elements[0], is_needed: E::SCALED || !self.is_adjacent || !V::MANY_REGISTERS }
    }
}

/// Prefetches of the keys or values of a page, a share at each step of a loop over another page. With few
/// queries there is little work for each page, and the hardware prefetcher stops at the end of each page of a
/// sequence whose pages are not adjacent.
pub(super) struct Prefetch<'a, E> {
    place: &'a E,
    is_needed: bool,
}

impl<E: Element> Prefetch<'_, E> {
    /// Prefetches `count` elements from `first` on, if there are few `QUERIES`. A constant `count` makes it a
    /// few instructions.
    #[inline(always)]
    pub fn step<const QUERIES: usize>(&self, first: usize, count: usize) {
        if QUERIES <= FEW_QUERIES && self.is_needed {
            for line in 0..(count * size_of::<E>()).div_ceil(size_of::<Line>()) {
                prefetch_to_l2(self.place, first * size_of::<E>() + line * size_of::<Line>());
            }
        }
    }
}

/// Turns the scores of one query into softmax weights. Returns the largest score and the sum of the
/// weights. Slots not visible get weight 0.
#[inline(always)]
fn softmax_weights<V: Lanes>(
    scores: &mut [f32],
    first: usize,
    seen: Range<usize>,
    soft_cap: Option<f32>,
) -> (f32, f32) {
    scores[..seen.start - first].fill(f32::NEG_INFINITY);
    scores[seen.end - first..].fill(f32::NEG_INFINITY);
    if let Some(cap) = soft_cap {
        for score in &mut scores[seen.start - first..seen.end - first] {
            // cap · tanh(score / cap)
            *score = cap * (1.0 - 2.0 / (1.0 + exp(2.0 * (*score / cap))));
        }
    }
    let (scores, _) = scores.as_chunks_mut::<LANES>();
    let mut largest = [f32::NEG_INFINITY; LANES];
    for scores in &*scores {
        for lane in 0..LANES {
            // NaN is the maximum, so that it propagates.
            let (score, max) = (scores[lane], largest[lane]);
            largest[lane] = if score < max || max.is_nan() { max } else { score };
        }
    }
    let max = largest.iter().fold(f32::NEG_INFINITY, |max, &x| if x < max || max.is_nan() { max } else { x });
    let mut sum = V::splat(0.0);
    for scores in scores {
        for score in &mut *scores {
            *score = exp(*score - max);
        }
        sum = V::load(scores).mul_add(V::splat(1.0), sum);
    }
    (max, sum.sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::lanes::F32x16;

    /// Returns true if the first page of the chunk prefetches.
    fn prefetched<V: Lanes, E: Element>(block_table: &[PageId], slots: Range<usize>) -> bool {
        let chunk = Chunk { block_table, kv_head: 0, slots };
        chunk.pages().next().unwrap().prefetch::<V, E>(&[E::ZERO]).is_needed
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn consecutive_float_pages_are_not_prefetched() {
        use crate::host::{lanes::Avx512, matrix_unit::NoMatrixUnit, page_id::NO_PAGE};
        // Only a constant of the lanes is used, none of their instructions.
        type Wide = Avx512<NoMatrixUnit>;
        assert!(!prefetched::<Wide, u16>(&[4, 5, 6], 0..90));
        assert!(!prefetched::<Wide, u16>(&[9, 5, 6, NO_PAGE], 32..96), "pages of other chunks do not count");
        assert!(prefetched::<Wide, f32>(&[4, 5, 7], 0..96));
        assert!(prefetched::<Wide, u16>(&[6, 5], 0..40));
        assert!(prefetched::<Wide, u16>(&[NO_PAGE, 0], 0..40));
        assert!(prefetched::<Wide, u8>(&[4, 5, 6], 0..90), "8 bit always");
    }

    #[test]
    fn prefetches_the_next_page_and_the_next_chunk() {
        let block_table: Vec<PageId> = (100..110).collect();
        let chunk = Chunk { block_table: &block_table, kv_head: 0, slots: 0..CHUNK };
        let soon: Vec<_> = chunk.pages().map(|at| (at.page, at.next, at.of_next_chunk)).collect();
        assert_eq!([soon[0], soon[1], soon[7]], [(100, 101, 108), (101, 102, 109), (107, 108, 109)]);
    }

    #[test]
    fn narrow_registers_prefetch_consecutive_pages_too() {
        assert!(prefetched::<F32x16, u16>(&[4, 5, 6], 0..90));
    }
}
