//! Products with keys and values in f16 and f32.

// Loops over registers are plain indexed loops: closures are compiled with the target features of their caller only
// if the compiler happens to inline them.
#![allow(clippy::needless_range_loop)]

use super::super::lanes::{LANES, Lanes};
use super::super::pages::{FloatElement, PAGE_LEN, Pages};
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
        for ChunkPage { place, page, next, .. } in chunk.pages() {
            let (keys, _) = pages.keys(page, chunk.kv_head).as_chunks();
            let ahead = [pages.keys(next, chunk.kv_head), pages.values(page, chunk.kv_head)]
                .map(|elements| Prefetch::new(elements, keys.len()));
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
        for ChunkPage { place, page, of_next_chunk, .. } in chunk.pages() {
            let used = PAGE_LEN.min(chunk.end() - place);
            let values = &pages.values(page, chunk.kv_head)[..used * pages.width()];
            let ahead = Prefetch::new(pages.keys(of_next_chunk, chunk.kv_head), PAGE_LEN);
            add_values::<V, E>(weights, place, values, pages.width(), &ahead, &mut out.values);
        }
    }
}

/// Computes the scores of all queries for a page.
#[inline(always)]
fn score_page<V: Lanes, E: FloatElement>(
    queries: &[&[f32]],
    keys: &[[E; PAGE_LEN]],
    ahead: &[Prefetch<'_>; 2],
    scale: f32,
    place: usize,
    scores: &mut [[f32; CHUNK]],
) {
    let mut done = 0;
    while done < queries.len() {
        let (queries, scores) = (&queries[done..], &mut scores[done..]);
        done += match queries.len() {
            1 => score_queries::<V, E, 1>(queries, keys, ahead, scale, place, scores),
            2 | 3 => score_queries::<V, E, 2>(queries, keys, ahead, scale, place, scores),
            4..=7 => score_queries::<V, E, 4>(queries, keys, ahead, scale, place, scores),
            _ => score_queries::<V, E, 8>(queries, keys, ahead, scale, place, scores),
        };
    }
}

/// Computes the scores of `M` queries: slots are in lanes, and each score is one chain of multiply-adds
/// over the head dimension.
#[inline(always)]
fn score_queries<V: Lanes, E: FloatElement, const M: usize>(
    queries: &[&[f32]],
    keys: &[[E; PAGE_LEN]],
    ahead: &[Prefetch<'_>; 2],
    scale: f32,
    place: usize,
    scores: &mut [[f32; CHUNK]],
) -> usize {
    let mut sums = [[V::splat(0.0); 2]; M];
    let mut rows: [&[f32]; M] = [&[]; M];
    for m in 0..M {
        rows[m] = &queries[m][..keys.len()];
    }
    for (column, keys) in keys.iter().enumerate() {
        ahead.iter().for_each(|ahead| ahead.step::<M>(column));
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
            sums[m][half].mul(V::splat(scale)).store(&mut out[half]);
        }
    }
    M
}

/// Accumulates a page's values times their weights, in the order of the slots.
#[inline(always)]
fn add_values<V: Lanes, E: FloatElement>(
    weights: &[[f32; CHUNK]],
    place: usize,
    values: &[E],
    width: usize,
    ahead: &Prefetch<'_>,
    out: &mut [f32],
) {
    let mut done = 0;
    while done < weights.len() {
        let (weights, out) = (&weights[done..], &mut out[done * width..]);
        done += match weights.len() {
            1 => add_rows::<V, E, 1, 8>(weights, place, values, width, ahead, out),
            2 | 3 => add_rows::<V, E, 2, 8>(weights, place, values, width, ahead, out),
            4 | 5 => add_rows::<V, E, 4, 4>(weights, place, values, width, ahead, out),
            _ => add_rows::<V, E, 6, 4>(weights, place, values, width, ahead, out),
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
    ahead: &Prefetch<'_>,
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
    ahead: &Prefetch<'_>,
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
        if column == 0 {
            ahead.step::<M>(slot);
        }
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
