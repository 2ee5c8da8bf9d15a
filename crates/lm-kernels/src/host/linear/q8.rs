//! Q8 kernel: bytes; blocks of 64 columns.

#![allow(clippy::needless_range_loop, reason = "see the parent")]

use super::super::lanes::{Ahead, Lanes, Line, prefetch_over, prefetch_stream};
use super::super::pack::{IntegerLayout, Q8, Tile};
use super::activations::{QuantizedRows, SPAN, Span};
use super::integer::{IntegerWeights, SPAN_LINES, add_block};

/// Blocks per span.
const BLOCKS: usize = SPAN / Q8::BLOCK;
/// Lines per block.
const LINES: usize = Q8::BLOCK / 4;

impl IntegerWeights for Q8 {
    const FEW_ROWS: usize = 96;

    #[inline(always)]
    fn multiply<V: Lanes, const M: usize>(tile: &Tile<'_, Q8>, x: &QuantizedRows, row: usize) -> [V; M] {
        let mut sums = [V::splat(0.0); M];
        prefetch_over::<M>(tile.scales);
        for (span, (scales, lines)) in
            tile.scales.chunks(BLOCKS).zip(tile.lines.chunks(SPAN_LINES)).enumerate()
        {
            let x = x.spans::<M>(span, row);
            let blocks = scales.iter().zip(lines.chunks(LINES)).take(BLOCKS);
            for (block, (steps, lines)) in blocks.enumerate() {
                let dots = dots::<V, M>(lines, block, x);
                add_block(&mut sums, &dots, steps, x, block);
            }
        }
        sums
    }

    #[inline(always)]
    fn bytes<'a>(tile: &Tile<'a, Q8>, span: usize, room: &'a mut [Line; SPAN_LINES]) -> &'a [Line] {
        let lines = tile.lines.chunks(SPAN_LINES).nth(span).unwrap_or_default();
        if lines.len().is_multiple_of(LINES) {
            return lines;
        }
        room[..lines.len()].copy_from_slice(lines);
        &room[..lines.len().next_multiple_of(LINES)]
    }
}

/// `Σ q · x` over a block: at most 64 · 127 · 127 in magnitude.
#[inline(always)]
fn dots<V: Lanes, const M: usize>(lines: &[Line], block: usize, x: &[Span; M]) -> [V::Ints; M] {
    let mut dots = [V::start_bytes(x[0].byte_corrections[block]); M];
    for m in 1..M {
        dots[m] = V::start_bytes(x[m].byte_corrections[block]);
    }
    let ahead = Ahead::of_rows::<M>();
    for j in 0..lines.len().min(LINES) {
        prefetch_stream(&lines[j], ahead);
        let w = V::load_bytes(&lines[j]);
        for m in 0..M {
            dots[m] = V::dot_bytes(dots[m], w, V::quad(x[m].quads[block * LINES + j]));
        }
    }
    dots
}
