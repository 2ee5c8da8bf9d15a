//! Products with keys and values in f16 and f32.

// Loops over registers are plain indexed loops: closures are compiled with the target features of their
// caller only if the compiler happens to inline them.
#![allow(clippy::needless_range_loop)]

use super::super::lanes::{LANES, Lanes};
use super::super::page_id::PAGE_LEN;
use super::super::pages::{FloatElement, Pages};
use super::chunk::{Attend, CHUNK, Chunk, ChunkPage, Partial, Prefetch, Queries};

impl<E: FloatElement> Attend for E {
    #[inline(always)]
    fn score_chunk<V: Lanes>(
        queries: &Queries<'_>,
        pages: &Pages<E>,
        chunk: &Chunk<'_>,
        scale: f32,
        scores: &mut [[f32; CHUNK]],
    ) {
        for at in chunk.pages() {
            let ChunkPage { place, page, next, .. } = at;
            let (keys, _) = pages.keys(page, chunk.kv_head).as_chunks();
            let [next, values] = [pages.keys(next, chunk.kv_head), pages.values(page, chunk.kv_head)];
            let ahead = [at.prefetch::<V, _>(next), at.prefetch::<V, _>(values)];
            score_page::<V, E>(&queries.heads, keys, &ahead, scale, place, scores);
        }
    }

    #[inline(always)]
    fn add_chunk<V: Lanes>(
        weights: &mut [[f32; CHUNK]],
        pages: &Pages<E>,
        chunk: &Chunk<'_>,
        out: &mut Partial,
    ) {
        for at in chunk.pages() {
            let ChunkPage { place, page, of_next_chunk, .. } = at;
            let used = PAGE_LEN.min(chunk.end() - place);
            let values = &pages.values(page, chunk.kv_head)[..used * pages.width()];
            let ahead = at.prefetch::<V, _>(pages.keys(of_next_chunk, chunk.kv_head));
            add_values::<V, E>(weights, place, values, pages.width(), &ahead, &mut out.values);
        }
    }
}

/// Computes the scores of all queries for a page.
#[inline(always)]
fn score_page<V: Lanes, E: FloatElement>(
    queries: &[&[f32]],
    keys: &[[E; PAGE_LEN]],
    ahead: &[Prefetch<'_, E>; 2],
    scale: f32,
    place: usize,
    scores: &mut [[f32; CHUNK]],
) {
    let mut done = 0;
    while done < queries.len() {
        let (queries, scores) = (&queries[done..], &mut scores[done..]);
        done += match (V::MANY_REGISTERS, queries.len()) {
            _ if !V::IN_REGISTERS => score_queries::<V, E, 1, 1>(queries, keys, ahead, scale, place, scores),
            (_, 1) => score_queries::<V, E, 1, 2>(queries, keys, ahead, scale, place, scores),
            (_, 2 | 3) => score_queries::<V, E, 2, 2>(queries, keys, ahead, scale, place, scores),
            (false, 4 | 5) => score_queries::<V, E, 4, 1>(queries, keys, ahead, scale, place, scores),
            (false, _) => score_queries::<V, E, 6, 1>(queries, keys, ahead, scale, place, scores),
            (true, 4..=7) => score_queries::<V, E, 4, 2>(queries, keys, ahead, scale, place, scores),
            (true, 8..=11) => score_queries::<V, E, 8, 2>(queries, keys, ahead, scale, place, scores),
            (true, _) => score_queries::<V, E, 12, 2>(queries, keys, ahead, scale, place, scores),
        };
    }
}

/// Computes the scores of `M` queries, `N` registers of slots at a time.
#[inline(always)]
fn score_queries<V: Lanes, E: FloatElement, const M: usize, const N: usize>(
    queries: &[&[f32]],
    keys: &[[E; PAGE_LEN]],
    ahead: &[Prefetch<'_, E>; 2],
    scale: f32,
    place: usize,
    scores: &mut [[f32; CHUNK]],
) -> usize {
    for first in (0..PAGE_LEN).step_by(N * LANES) {
        score_slots::<V, E, M, N>(queries, keys, ahead, scale, place, first, scores);
    }
    M
}

/// [`score_queries`] for the slots from `first` on. Slots are in lanes, and each score is one chain of
/// multiply-adds over the head dimension.
#[inline(always)]
fn score_slots<V: Lanes, E: FloatElement, const M: usize, const N: usize>(
    queries: &[&[f32]],
    keys: &[[E; PAGE_LEN]],
    ahead: &[Prefetch<'_, E>; 2],
    scale: f32,
    place: usize,
    first: usize,
    scores: &mut [[f32; CHUNK]],
) {
    let mut sums = [[V::splat(0.0); N]; M];
    let mut rows: [&[f32]; M] = [&[]; M];
    for m in 0..M {
        rows[m] = &queries[m][..keys.len()];
    }
    for (column, keys) in keys.iter().enumerate() {
        for ahead in ahead {
            ahead.step::<M>(column * PAGE_LEN + first, N * LANES);
        }
        let (keys, _) = keys[first..first + N * LANES].as_chunks::<LANES>();
        let mut loaded = [V::splat(0.0); N];
        for n in 0..N {
            loaded[n] = E::load::<V>(&keys[n]);
        }
        for m in 0..M {
            let query = V::splat(rows[m][column]);
            for n in 0..N {
                sums[m][n] = loaded[n].mul_add(query, sums[m][n]);
            }
        }
    }
    for m in 0..M {
        let (out, _) = scores[m][place + first..][..N * LANES].as_chunks_mut::<LANES>();
        for n in 0..N {
            sums[m][n].mul(V::splat(scale)).store(&mut out[n]);
        }
    }
}

/// Accumulates a page's values times their weights, in the order of the slots.
#[inline(always)]
fn add_values<V: Lanes, E: FloatElement>(
    weights: &[[f32; CHUNK]],
    place: usize,
    values: &[E],
    width: usize,
    ahead: &Prefetch<'_, E>,
    out: &mut [f32],
) {
    let mut done = 0;
    while done < weights.len() {
        let (weights, out) = (&weights[done..], &mut out[done * width..]);
        done += match (V::MANY_REGISTERS, weights.len()) {
            _ if !V::IN_REGISTERS => add_rows::<V, E, 1, 1>(weights, place, values, width, ahead, out),
            (false, 1) => add_rows::<V, E, 1, 4>(weights, place, values, width, ahead, out),
            (false, 2 | 3) => add_rows::<V, E, 2, 2>(weights, place, values, width, ahead, out),
            (false, 4 | 5) => add_rows::<V, E, 4, 1>(weights, place, values, width, ahead, out),
            (false, _) => add_rows::<V, E, 6, 1>(weights, place, values, width, ahead, out),
            (true, 1) => add_rows::<V, E, 1, 8>(weights, place, values, width, ahead, out),
            (true, 2 | 3) => add_rows::<V, E, 2, 8>(weights, place, values, width, ahead, out),
            (true, 4 | 5) => add_rows::<V, E, 4, 4>(weights, place, values, width, ahead, out),
            (true, _) => add_rows::<V, E, 6, 4>(weights, place, values, width, ahead, out),
        };
    }
}

/// [`add_values`] for `M` queries, `N` registers of columns at a time.
#[inline(always)]
fn add_rows<V: Lanes, E: FloatElement, const M: usize, const N: usize>(
    weights: &[[f32; CHUNK]],
    place: usize,
    values: &[E],
    width: usize,
    ahead: &Prefetch<'_, E>,
    out: &mut [f32],
) -> usize {
    let mut column = 0;
    while column + N * LANES <= width {
        add_columns::<V, E, M, N>(weights, place, values, width, ahead, column, out);
        column += N * LANES;
    }
    while column < width {
        add_columns::<V, E, M, 1>(weights, place, values, width, ahead, column, out);
        column += LANES;
    }
    M
}

#[inline(always)]
fn add_columns<V: Lanes, E: FloatElement, const M: usize, const N: usize>(
    weights: &[[f32; CHUNK]],
    place: usize,
    values: &[E],
    width: usize,
    ahead: &Prefetch<'_, E>,
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
        ahead.step::<M>(slot * width + column, N * LANES);
        let (row, _) = row[column..column + N * LANES].as_chunks::<LANES>();
        let mut loaded = [V::splat(0.0); N];
        for n in 0..N {
            loaded[n] = E::load::<V>(&row[n]);
        }
        for m in 0..M {
            let weight = V::splat(weights[m][place + slot]);
            for n in 0..N {
                sums[m][n] = loaded[n].mul_add(weight, sums[m][n]);
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
