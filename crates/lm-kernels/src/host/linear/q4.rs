//! Q4 kernel: nibbles with an integer scale per 32 columns; blocks of 256 columns.

#![allow(clippy::needless_range_loop, reason = "see the parent")]

use super::super::lanes::{Ahead, LANES, Lanes, Line, prefetch_over, prefetch_stream};
use super::super::pack::{GROUP, IntegerLayout, Q4, Q4Scales, Tile};
use super::activations::{QuantizedRows, Span};
use super::integer::{IntegerWeights, SPAN_LINES, add_block};

/// Lines of nibbles per group.
const LINES: usize = Q4::GROUP_LINES;
/// Groups per block.
const GROUPS: usize = Q4::BLOCK / GROUP;

impl IntegerWeights for Q4 {
    const FEW_ROWS: usize = 32;

    #[inline(always)]
    fn multiply<V: Lanes, const M: usize>(tile: &Tile<'_, Q4>, x: &QuantizedRows, row: usize) -> [V; M] {
        let mut sums = [V::splat(0.0); M];
        prefetch_over::<M>(tile.scales);
        let ahead = Ahead::of_rows::<M>();
        for (block, (scales, lines)) in tile.scales.iter().zip(tile.lines.chunks(GROUPS * LINES)).enumerate()
        {
            let x = x.spans::<M>(block, row);
            let dots = dots::<V, M>(scales, lines, x, ahead);
            add_block(&mut sums, &dots, &scales.steps, x, 0);
        }
        sums
    }

    /// Two products per 16-bit multiplication: the word of a row has |s| as factor for both bytes, and |s| ·
    /// (q +
    /// 8) is at most 225. For a negative s the nibble is first subtracted from 15, which gives 7 - q.
    #[inline(always)]
    fn bytes<'a>(tile: &Tile<'a, Q4>, span: usize, room: &'a mut [Line; SPAN_LINES]) -> &'a [Line] {
        let scales = &tile.scales[span];
        let groups = tile.groups_of(span);
        let lines = &tile.lines[groups.start * LINES..groups.end * LINES];
        for (group, (lines, out)) in
            lines.as_chunks::<LINES>().0.iter().zip(room.as_chunks_mut::<8>().0).enumerate()
        {
            let (mut factors, mut flips, mut offsets) =
                ([0_u16; 2 * LANES], [0_u16; 2 * LANES], [0_u16; 2 * LANES]);
            for word in 0..2 * LANES {
                let row = word / 2;
                let magnitude = u16::from(scales.magnitudes[group / 2][row] >> (group % 2 * 4) & 15);
                let negative = scales.signs[group] >> row & 1;
                factors[word] = magnitude;
                flips[word] = negative * 0x0f0f;
                offsets[word] = (128 - (8 - negative) * magnitude) * 0x0101;
            }
            for j in 0..LINES {
                let words: [u16; 2 * LANES] = bytemuck::cast(lines[j]);
                let (mut low, mut high) = (words, words);
                for word in 0..2 * LANES {
                    low[word] = ((words[word] & 0x0f0f) ^ flips[word]) * factors[word] + offsets[word];
                    high[word] = ((words[word] >> 4 & 0x0f0f) ^ flips[word]) * factors[word] + offsets[word];
                }
                out[j] = bytemuck::cast(low);
                out[4 + j] = bytemuck::cast(high);
            }
        }
        &room[..(8 * groups.len()).next_multiple_of(16)]
    }
}

/// `Σ s · q · x` over a block: at most 256 · 120 · 127 in magnitude.
#[inline(always)]
fn dots<V: Lanes, const M: usize>(
    scales: &Q4Scales,
    lines: &[Line],
    x: &[Span; M],
    ahead: Ahead,
) -> [V::Ints; M] {
    let mut dots = [V::splat_int(0); M];
    let groups = lines.as_chunks::<LINES>().0;
    let groups = &groups[..groups.len().min(GROUPS)];
    for (pair, groups) in groups.chunks(2).enumerate() {
        let signs = [scales.signs[2 * pair], scales.signs[2 * pair + 1]];
        let factors = V::factors(&scales.magnitudes[pair], signs);
        for half in 0..groups.len() {
            let sums = group_sums::<V, M>(&groups[half], 2 * pair + half, x, ahead);
            for m in 0..M {
                dots[m] = V::add_scaled(dots[m], sums[m], factors[half]);
            }
        }
    }
    dots
}

/// `Σ q · x` over a group.
#[inline(always)]
fn group_sums<V: Lanes, const M: usize>(
    lines: &[Line; LINES],
    group: usize,
    x: &[Span; M],
    ahead: Ahead,
) -> [V::NibbleSums; M] {
    let mut sums = [V::start_nibbles(&x[0].nibble_corrections[group]); M];
    for m in 1..M {
        sums[m] = V::start_nibbles(&x[m].nibble_corrections[group]);
    }
    for j in 0..LINES {
        prefetch_stream(&lines[j], ahead);
        let [low, high] = V::load_nibbles(&lines[j]);
        for m in 0..M {
            let quads = &x[m].quads;
            let sum = V::dot_nibbles(sums[m], low, V::quad(quads[8 * group + j]));
            sums[m] = V::dot_nibbles(sum, high, V::quad(quads[8 * group + 4 + j]));
        }
    }
    sums
}
