//! Products with 8-bit keys and values, in integers: exact in any order.
//!
//! A query is rounded to 8 bits with one scale, as keys are. A softmax weight times the scale of its slot's
//! value is rounded to 14 bits of the chunk's largest, in two planes of 7 bits, so that the many small
//! weights beside a large one remain.

// Loops over registers are plain indexed loops: closures are compiled with the target features of their
// caller only if the compiler happens to inline them.
#![allow(clippy::needless_range_loop)]

use std::cell::RefCell;

use super::super::lanes::{LANES, Lanes, Line, bf16_to_f32, round};
use super::super::page_id::PAGE_LEN;
use super::super::pages::Pages;
use super::chunk::{Attend, CHUNK, Chunk, ChunkPage, Partial, Prefetch, Queries};

/// Lines of the keys of four dimensions: 16 slots each.
const KEY_LINES: usize = PAGE_LEN / LANES;

/// Planes of a weight.
const PLANES: usize = 2;

/// Bits of a plane.
const PLANE_BITS: u32 = 7;

/// Bits of the lower plane.
const LOWER: u32 = (1 << PLANE_BITS) - 1;

/// Maximum rounded weight.
const MAX_WEIGHT: f32 = ((1 << (PLANE_BITS * PLANES as u32)) - 1) as f32;

/// Rows of bytes, quads of adjacent dimensions or slots, with their scales.
#[derive(Default)]
struct ByteRows {
    /// `[rows, quads]`.
    quads: Vec<[i8; 4]>,
    /// Quads per row.
    width: usize,
    /// By row: -128 times the sum of its bytes, for operands with zero point 128.
    corrections: Vec<i32>,
    scales: Vec<f32>,
}

impl ByteRows {
    /// Removes all rows and sets the quads per row.
    fn clear(&mut self, width: usize) {
        self.quads.clear();
        self.corrections.clear();
        self.scales.clear();
        self.width = width;
    }

    /// Appends a row of zeros to be filled.
    fn push(&mut self) -> &mut [i8] {
        let start = self.quads.len();
        self.quads.resize(start + self.width, [0; 4]);
        self.quads[start..].as_flattened_mut()
    }

    /// Ends the first row that was filled since.
    #[inline(always)]
    fn end_row(&mut self, scale: f32) {
        let row = self.scales.len();
        let bytes = self.quads[row * self.width..(row + 1) * self.width].as_flattened();
        self.corrections.push(-128 * bytes.iter().map(|&byte| i32::from(byte)).sum::<i32>());
        self.scales.push(scale);
    }

    /// Appends a query, rounded to 8 bits.
    #[inline(always)]
    fn push_query(&mut self, query: &[f32]) {
        let scale = largest(query) / 127.0;
        let inverse = inverse(scale);
        for (byte, x) in self.push().iter_mut().zip(query) {
            *byte = round(x * inverse) as i8;
        }
        self.end_row(scale);
    }

    /// Appends the planes of a chunk's weights, the upper one first.
    #[inline(always)]
    fn push_weights(&mut self, weights: &[f32; CHUNK]) {
        let scale = largest(weights) / MAX_WEIGHT;
        let inverse = inverse(scale);
        for (byte, x) in self.push().iter_mut().zip(weights) {
            *byte = (round(x * inverse) as u32 >> PLANE_BITS) as i8;
        }
        for (byte, x) in self.push().iter_mut().zip(weights) {
            *byte = (round(x * inverse) as u32 & LOWER) as i8;
        }
        self.end_row(scale * (LOWER + 1) as f32);
        self.end_row(scale);
    }

    /// `M` rows from `first` on.
    #[inline(always)]
    fn rows<const M: usize>(&self, first: usize) -> [&[[i8; 4]]; M] {
        let mut rows: [&[[i8; 4]]; M] = [&[]; M];
        for m in 0..M {
            rows[m] = &self.quads[(first + m) * self.width..(first + m + 1) * self.width];
        }
        rows
    }
}

/// The largest magnitude; NaN if there is one.
#[inline(always)]
fn largest(x: &[f32]) -> f32 {
    // The bits of nonnegative floats have the order of the floats; NaN is the largest.
    let mut largest = [0; 2 * LANES];
    let (blocks, rest) = x.as_chunks::<{ 2 * LANES }>();
    for block in blocks {
        for (largest, x) in largest.iter_mut().zip(block) {
            *largest = x.abs().to_bits().max(*largest);
        }
    }
    for (largest, x) in largest.iter_mut().zip(rest) {
        *largest = x.abs().to_bits().max(*largest);
    }
    f32::from_bits(largest.iter().fold(0, |a, &b| a.max(b)))
}

/// The inverse of a scale; 0 for one so small that its inverse would be infinite.
#[inline(always)]
fn inverse(scale: f32) -> f32 {
    if scale < 1e-36 { 0.0 } else { 1.0 / scale }
}

thread_local! {
    /// Scratch space for the queries or the weights of a chunk.
    static ROWS: RefCell<ByteRows> = RefCell::default();
}

impl Attend for u8 {
    #[inline(always)]
    fn score_chunk<V: Lanes>(
        queries: &Queries<'_>,
        pages: &Pages<u8>,
        chunk: &Chunk<'_>,
        scale: f32,
        scores: &mut [[f32; CHUNK]],
    ) {
        let mut rows = ROWS.take();
        rows.clear(queries.heads.first().map_or(0, |query| query.len().div_ceil(4)));
        queries.heads.iter().for_each(|query| rows.push_query(query));
        rows.scales.iter_mut().for_each(|row| *row *= scale);
        for at in chunk.pages() {
            let ChunkPage { place, page, next, .. } = at;
            let [next, values] = [pages.keys(next, chunk.kv_head), pages.values(page, chunk.kv_head)];
            let keys = Keys {
                lines: pages.keys(page, chunk.kv_head).as_chunks::<{ size_of::<Line>() }>().0.as_chunks().0,
                scales: pages.key_scales(page, chunk.kv_head),
                ahead: [at.prefetch::<V, _>(next), at.prefetch::<V, _>(values)],
                place,
            };
            score_page::<V>(&rows, &keys, scores);
        }
        ROWS.set(rows);
    }

    #[inline(always)]
    fn add_chunk<V: Lanes>(
        weights: &mut [[f32; CHUNK]],
        pages: &Pages<u8>,
        chunk: &Chunk<'_>,
        out: &mut Partial,
    ) {
        let mut rows = ROWS.take();
        rows.clear(CHUNK / 4);
        for weights in weights {
            scale_weights(weights, pages, chunk);
            rows.push_weights(weights);
        }
        let values: Vec<ValuePage<'_>> = chunk
            .pages()
            .map(|at| ValuePage {
                quad: at.place / 4,
                lines: pages.values(at.page, chunk.kv_head).as_chunks().0,
                ahead: at.prefetch::<V, _>(pages.keys(at.of_next_chunk, chunk.kv_head)),
            })
            .collect();
        let (tiles, mut done) = (pages.width() / LANES, 0);
        while done < rows.scales.len() {
            let values = Values { pages: &values, tiles };
            let out = &mut out.values[done / PLANES * pages.width()..];
            done += match rows.scales.len() - done {
                _ if !V::IN_REGISTERS => add_rows::<V, 2, 1>(&rows, done, &values, out),
                2 => add_rows::<V, 2, 4>(&rows, done, &values, out),
                8.. if V::MANY_REGISTERS => add_rows::<V, 8, 2>(&rows, done, &values, out),
                _ => add_rows::<V, 4, 2>(&rows, done, &values, out),
            };
        }
        ROWS.set(rows);
    }
}

/// Multiplies the weights of visible slots by the scales of the slots' values. The weights of others are 0,
/// and their scales may be anything.
#[inline(always)]
fn scale_weights(weights: &mut [f32; CHUNK], pages: &Pages<u8>, chunk: &Chunk<'_>) {
    let places = chunk.places();
    weights[..places.start].fill(0.0);
    weights[places.end..].fill(0.0);
    for ChunkPage { place, page, .. } in chunk.pages() {
        let scales = pages.value_scales(page, chunk.kv_head).as_flattened();
        for (weight, scale) in weights[place..place + PAGE_LEN].iter_mut().zip(scales) {
            *weight = if *weight == 0.0 { 0.0 } else { *weight * bf16_to_f32(*scale) };
        }
    }
}

/// Keys of a page.
struct Keys<'a> {
    /// By four dimensions.
    lines: &'a [[Line; KEY_LINES]],
    scales: &'a [[u16; LANES]],
    /// The next keys and the values.
    ahead: [Prefetch<'a, u8>; 2],
    /// First slot in the chunk.
    place: usize,
}

/// Computes the scores of all queries for a page.
#[inline(always)]
fn score_page<V: Lanes>(rows: &ByteRows, keys: &Keys<'_>, scores: &mut [[f32; CHUNK]]) {
    let mut done = 0;
    while done < scores.len() {
        let scores = &mut scores[done..];
        done += match scores.len() {
            _ if !V::IN_REGISTERS => score_rows::<V, 1>(rows, done, keys, scores),
            1 => score_rows::<V, 1>(rows, done, keys, scores),
            8.. if V::MANY_REGISTERS => score_rows::<V, 8>(rows, done, keys, scores),
            4.. if V::MANY_REGISTERS => score_rows::<V, 4>(rows, done, keys, scores),
            _ => score_rows::<V, 2>(rows, done, keys, scores),
        };
    }
}

/// Computes the scores of `M` queries: slots are in lanes.
#[inline(always)]
fn score_rows<V: Lanes, const M: usize>(
    rows: &ByteRows,
    first: usize,
    keys: &Keys<'_>,
    scores: &mut [[f32; CHUNK]],
) -> usize {
    let queries: [&[[i8; 4]]; M] = rows.rows(first);
    let mut sums = [[V::splat_int(0); KEY_LINES]; M];
    for m in 0..M {
        sums[m] = [V::start_bytes(rows.corrections[first + m]); KEY_LINES];
    }
    for (quad, lines) in keys.lines.iter().enumerate() {
        for ahead in &keys.ahead {
            ahead.step::<M>(quad * KEY_LINES * size_of::<Line>(), KEY_LINES * size_of::<Line>());
        }
        let lines = [V::load_bytes(&lines[0]), V::load_bytes(&lines[1])];
        for m in 0..M {
            let query = V::quad(queries[m][quad]);
            for half in 0..KEY_LINES {
                sums[m][half] = V::dot_bytes(sums[m][half], lines[half], query);
            }
        }
    }
    for m in 0..M {
        let (out, _) = scores[m][keys.place..keys.place + PAGE_LEN].as_chunks_mut();
        for half in 0..KEY_LINES {
            let scale = V::load_bf16(&keys.scales[half]).mul(V::splat(rows.scales[first + m]));
            V::from_ints(sums[m][half]).mul(scale).store(&mut out[half]);
        }
    }
    M
}

/// Values of a page.
struct ValuePage<'a> {
    /// First quad of slots in the chunk.
    quad: usize,
    /// Four slots and 16 columns each.
    lines: &'a [Line],
    /// Keys of the next chunk.
    ahead: Prefetch<'a, u8>,
}

/// Values of a chunk.
struct Values<'a> {
    pages: &'a [ValuePage<'a>],
    /// Lines of four slots.
    tiles: usize,
}

/// Computes `M` rows of results, two planes each, `N` registers of columns at a time.
#[inline(always)]
fn add_rows<V: Lanes, const M: usize, const N: usize>(
    rows: &ByteRows,
    first: usize,
    values: &Values<'_>,
    out: &mut [f32],
) -> usize {
    let mut tile = 0;
    while tile + N <= values.tiles {
        add_tiles::<V, M, N>(rows, first, values, tile, out);
        tile += N;
    }
    while tile < values.tiles {
        add_tiles::<V, M, 1>(rows, first, values, tile, out);
        tile += 1;
    }
    M
}

#[inline(always)]
fn add_tiles<V: Lanes, const M: usize, const N: usize>(
    rows: &ByteRows,
    first: usize,
    values: &Values<'_>,
    tile: usize,
    out: &mut [f32],
) {
    let weights: [&[[i8; 4]]; M] = rows.rows(first);
    let mut sums = [[V::splat_int(0); N]; M];
    for m in 0..M {
        sums[m] = [V::start_bytes(rows.corrections[first + m]); N];
    }
    for page in values.pages {
        for (quad, lines) in page.lines.chunks_exact(values.tiles).enumerate() {
            page.ahead.step::<M>((quad * values.tiles + tile) * size_of::<Line>(), N * size_of::<Line>());
            let lines = &lines[tile..tile + N];
            let mut bytes = [V::load_bytes(&lines[0]); N];
            for n in 1..N {
                bytes[n] = V::load_bytes(&lines[n]);
            }
            for m in 0..M {
                let weight = V::quad(weights[m][page.quad + quad]);
                for n in 0..N {
                    sums[m][n] = V::dot_bytes(sums[m][n], bytes[n], weight);
                }
            }
        }
    }
    let width = values.tiles * LANES;
    for query in 0..M / PLANES {
        let row = PLANES * query;
        let scales = [V::splat(rows.scales[first + row]), V::splat(rows.scales[first + row + 1])];
        let (out, _) = out[query * width + tile * LANES..][..N * LANES].as_chunks_mut();
        for n in 0..N {
            let lower = V::from_ints(sums[row + 1][n]).mul(scales[1]);
            V::from_ints(sums[row][n]).mul_add(scales[0], lower).store(&mut out[n]);
        }
    }
}
