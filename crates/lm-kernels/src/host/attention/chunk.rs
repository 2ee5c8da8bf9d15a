//! Attention of a tile of queries to one chunk of slots.

// Loops over registers are plain indexed loops: closures are compiled with the target features of their caller only
// if the compiler happens to inline them.
#![allow(clippy::needless_range_loop)]

use std::ops::Range;

use super::super::lanes::{LANES, Lanes, bf16_to_f32, exp, prefetch};
use super::super::pages::{Element, PAGE_LEN, PageId, Pages};
use super::AttentionSpec;

/// Slots of a chunk. Chunks are aligned to multiples of it in the sequence, whatever rows a call has.
pub(super) const CHUNK: usize = 256;

/// Query count up to which a page is memory-bound, not compute-bound.
const FEW_QUERIES: usize = 4;

/// Bytes of a cache line.
const LINE: usize = 64;

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
    /// By query; -∞ for one that sees none of the slots.
    pub max: Vec<f32>,
    /// By query.
    pub sum: Vec<f32>,
    /// `[queries, width]`.
    pub values: Vec<f32>,
}

impl Partial {
    /// Resets to the result over no slots.
    pub fn reset(&mut self, queries: usize, width: usize) {
        self.max.clear();
        self.max.resize(queries, f32::NEG_INFINITY);
        self.sum.clear();
        self.sum.resize(queries, 0.0);
        self.values.clear();
        self.values.resize(queries * width, 0.0);
    }

    /// Merges the slots of `next`, which come after all that are merged already (online softmax).
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

/// A range of slots within one chunk.
pub(super) struct Place<'a> {
    pub block_table: &'a [PageId],
    pub kv_head: usize,
    pub slots: Range<usize>,
}

/// Computes the attention of the queries to some slots into `out`; `scores` is scratch space.
#[inline(always)]
pub(super) fn attend_chunk<V: Lanes, E: Element>(
    queries: &Queries<'_>,
    pages: &Pages<E>,
    Place { block_table, kv_head, slots }: Place<'_>,
    spec: &AttentionSpec,
    scores: &mut Vec<[f32; CHUNK]>,
    out: &mut Partial,
) {
    let count = queries.heads.len();
    out.reset(count, pages.width());
    scores.resize(count.max(scores.len()), [0.0; CHUNK]);
    let scores = &mut scores[..count];
    let start = slots.start / CHUNK * CHUNK;
    let chunk_pages = slots.start / PAGE_LEN..slots.end.div_ceil(PAGE_LEN);
    for page in chunk_pages.clone() {
        let place = page * PAGE_LEN - start;
        let (keys, scales) =
            (pages.keys(block_table[page], kv_head), pages.key_scales(block_table[page], kv_head));
        let next = block_table.get(page + 1).map_or(&[][..], |&page| pages.keys(page, kv_head));
        let prefetch = Prefetch { keys: next, values: pages.values(block_table[page], kv_head) };
        score_page::<V, E>(&queries.heads, keys, scales, &prefetch, spec.scale, place, scores);
    }
    let places = chunk_pages.start * PAGE_LEN - start..chunk_pages.end * PAGE_LEN - start;
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
    for page in chunk_pages {
        let used = PAGE_LEN.min(slots.end - page * PAGE_LEN);
        let place = page * PAGE_LEN - start;
        for (slot, scale) in pages.value_scales(block_table[page], kv_head).as_flattened().iter().enumerate()
        {
            let scale = bf16_to_f32(*scale);
            scores.iter_mut().for_each(|scores| scores[place + slot] *= scale);
        }
        let values = &pages.values(block_table[page], kv_head)[..used * pages.width()];
        add_values::<V, E>(scores, place, values, pages.width(), &mut out.values);
    }
}

/// Prefetches issued while a page's scores are computed: the keys of the next page and the values of this one. With
/// few queries there is little work per page, and the hardware prefetcher stops at memory page boundaries.
struct Prefetch<'a, E> {
    keys: &'a [[E; PAGE_LEN]],
    values: &'a [E],
}

impl<E> Prefetch<'_, E> {
    /// Prefetches the share of one of the page's `columns`.
    #[inline(always)]
    fn prefetch(&self, column: usize, columns: usize) {
        let keys = self.keys.get(column).map_or(&[][..], |keys| keys);
        for keys in keys.chunks((LINE / size_of::<E>()).min(PAGE_LEN)) {
            prefetch(&keys[0]);
        }
        let share = self.values.len() / columns;
        for values in self.values[column * share..(column + 1) * share].chunks(LINE / size_of::<E>()) {
            prefetch(&values[0]);
        }
    }
}

/// Computes the scores of all queries for a page.
#[inline(always)]
fn score_page<V: Lanes, E: Element>(
    queries: &[&[f32]],
    keys: &[[E; PAGE_LEN]],
    scales: &[[u16; LANES]],
    prefetch: &Prefetch<'_, E>,
    scale: f32,
    place: usize,
    scores: &mut [[f32; CHUNK]],
) {
    let mut done = 0;
    while done < queries.len() {
        let (queries, scores) = (&queries[done..], &mut scores[done..]);
        done += match queries.len() {
            1 => score_queries::<V, E, 1>(queries, keys, scales, prefetch, scale, place, scores),
            2 | 3 => score_queries::<V, E, 2>(queries, keys, scales, prefetch, scale, place, scores),
            4..=7 => score_queries::<V, E, 4>(queries, keys, scales, prefetch, scale, place, scores),
            _ => score_queries::<V, E, 8>(queries, keys, scales, prefetch, scale, place, scores),
        };
    }
}

/// Computes the scores of `M` queries: slots are in lanes, and each score is one chain of multiply-adds
/// over the head dimension.
#[inline(always)]
fn score_queries<V: Lanes, E: Element, const M: usize>(
    queries: &[&[f32]],
    keys: &[[E; PAGE_LEN]],
    scales: &[[u16; LANES]],
    prefetch: &Prefetch<'_, E>,
    scale: f32,
    place: usize,
    scores: &mut [[f32; CHUNK]],
) -> usize {
    let mut sums = [[V::splat(0.0); 2]; M];
    let mut rows: [&[f32]; M] = [&[]; M];
    for m in 0..M {
        rows[m] = &queries[m][..keys.len()];
    }
    let columns = keys.len();
    for (column, keys) in keys.iter().enumerate() {
        if M <= FEW_QUERIES {
            prefetch.prefetch(column, columns);
        }
        let (halves, _) = keys.as_chunks::<LANES>();
        let (low, high) = (E::load::<V>(&halves[0]), E::load::<V>(&halves[1]));
        for m in 0..M {
            let query = V::splat(rows[m][column]);
            sums[m] = [low.mul_add(query, sums[m][0]), high.mul_add(query, sums[m][1])];
        }
    }
    for m in 0..M {
        let (out, _) = scores[m][place..place + PAGE_LEN].as_chunks_mut::<LANES>();
        for half in 0..2 {
            let mut sum = sums[m][half].mul(V::splat(scale));
            if let Some(scales) = scales.get(half) {
                sum = sum.mul(V::load_bf16(scales));
            }
            sum.store(&mut out[half]);
        }
    }
    M
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
            // NaN is taken as the maximum, so that it propagates.
            largest[lane] = if scores[lane] < largest[lane] { largest[lane] } else { scores[lane] };
        }
    }
    let max = largest.iter().fold(f32::NEG_INFINITY, |max, &x| if x < max { max } else { x });
    let mut sum = V::splat(0.0);
    for scores in scores {
        for score in &mut *scores {
            *score = exp(*score - max);
        }
        sum = V::load(scores).mul_add(V::splat(1.0), sum);
    }
    (max, sum.sum())
}

/// Accumulates a page's values times their weights, in the order of the slots.
#[inline(always)]
fn add_values<V: Lanes, E: Element>(
    weights: &[[f32; CHUNK]],
    place: usize,
    values: &[E],
    width: usize,
    out: &mut [f32],
) {
    let mut done = 0;
    while done < weights.len() {
        let (weights, out) = (&weights[done..], &mut out[done * width..]);
        done += match weights.len() {
            1 => add_rows::<V, E, 1, 8>(weights, place, values, width, out),
            2 | 3 => add_rows::<V, E, 2, 8>(weights, place, values, width, out),
            4 | 5 => add_rows::<V, E, 4, 4>(weights, place, values, width, out),
            _ => add_rows::<V, E, 6, 4>(weights, place, values, width, out),
        };
    }
}

/// [`add_values`] for `M` queries, `N` registers of columns at a time.
#[inline(always)]
fn add_rows<V: Lanes, E: Element, const M: usize, const N: usize>(
    weights: &[[f32; CHUNK]],
    place: usize,
    values: &[E],
    width: usize,
    out: &mut [f32],
) -> usize {
    let mut column = 0;
    while column + N * LANES <= width {
        add_columns::<V, E, M, N>(weights, place, values, width, column, out);
        column += N * LANES;
    }
    while column < width {
        add_columns::<V, E, M, 1>(weights, place, values, width, column, out);
        column += LANES;
    }
    M
}

#[inline(always)]
fn add_columns<V: Lanes, E: Element, const M: usize, const N: usize>(
    weights: &[[f32; CHUNK]],
    place: usize,
    values: &[E],
    width: usize,
    column: usize,
    out: &mut [f32],
) {
    let mut sums = [[V::splat(0.0); N]; M];
    for m in 0..M {
        let (out, _) = out[m * width + column..][..N * LANES].as_chunks::<LANES>();
        for n in 0..N {
            sums[m][n] = V::load(&out[n]);
        }
    }
    for (slot, row) in values.chunks_exact(width).enumerate() {
        let (row, _) = row[column..column + N * LANES].as_chunks::<LANES>();
        let mut weight = [V::splat(0.0); M];
        for m in 0..M {
            weight[m] = V::splat(weights[m][place + slot]);
        }
        for n in 0..N {
            let value = E::load::<V>(&row[n]);
            for m in 0..M {
                sums[m][n] = value.mul_add(weight[m], sums[m][n]);
            }
        }
    }
    for m in 0..M {
        let (out, _) = out[m * width + column..][..N * LANES].as_chunks_mut::<LANES>();
        for n in 0..N {
            sums[m][n].store(&mut out[n]);
        }
    }
}
