//! Codes of a record of a block type, as stored and expanded to bytes.

#![allow(clippy::needless_range_loop, reason = "see `integer`")]

use super::super::lanes::{Ahead, Lanes, Line, prefetch_stream};
use super::super::pack::{BlockFormat, EXPANDED_LINES, RECORD, Record, code};

/// Form of the codes of a record.
pub(super) trait Codes {
    /// Lines per group of a type.
    fn lines<F: BlockFormat>() -> usize;
    /// Loads the expanded line `j` of a group.
    fn load<V: Lanes, F: BlockFormat>(lines: &[Line], j: usize) -> V::Bytes;
    /// Prefetches what is read after these lines.
    fn prefetch<const M: usize>(lines: &[Line]);
}

/// Codes as they are stored, in a stream from memory.
pub(super) struct Stored;

impl Codes for Stored {
    #[inline(always)]
    fn lines<F: BlockFormat>() -> usize {
        F::BITS
    }

    #[inline(always)]
    fn load<V: Lanes, F: BlockFormat>(lines: &[Line], j: usize) -> V::Bytes {
        code::<V, F>(lines, j)
    }

    #[inline(always)]
    fn prefetch<const M: usize>(lines: &[Line]) {
        prefetch_lines::<M>(lines);
    }
}

/// Codes expanded to bytes, in the L1 cache.
pub(super) struct Expanded;

impl Codes for Expanded {
    #[inline(always)]
    fn lines<F: BlockFormat>() -> usize {
        EXPANDED_LINES
    }

    #[inline(always)]
    fn load<V: Lanes, F: BlockFormat>(lines: &[Line], j: usize) -> V::Bytes {
        V::load_bytes(&lines[j])
    }

    #[inline(always)]
    fn prefetch<const M: usize>(_: &[Line]) {}
}

/// Expands the codes of a record to bytes, for products of `M` rows or more.
#[inline(always)]
pub(super) fn expand<'a, V: Lanes, F: BlockFormat, const M: usize>(
    record: &Record<'_, F>,
    room: &'a mut [Line; RECORD / 4],
) -> &'a [Line] {
    prefetch_lines::<M>(record.all_lines);
    let mut len = 0;
    for (lines, room) in record.lines.chunks_exact(F::BITS).zip(room.as_chunks_mut::<EXPANDED_LINES>().0) {
        for j in 0..EXPANDED_LINES {
            V::store_bytes(code::<V, F>(lines, j), &mut room[j]);
        }
        len += EXPANDED_LINES;
    }
    &room[..len]
}

/// Number of lines of a type's codes whose products with a row [`Lanes::dot_codes`] adds up.
pub(super) const fn lines_of_codes<F: BlockFormat>() -> usize {
    let mut largest = (1 << F::BITS) - 1;
    if let Some(table) = F::TABLE {
        largest = 0;
        let mut entry = 0;
        while entry < table.len() {
            if table[entry] as usize > largest {
                largest = table[entry] as usize;
            }
            entry += 1;
        }
    }
    match largest {
        ..=16 => 8,
        17..=32 => 4,
        33..=64 => 2,
        _ => 1,
    }
}

/// Prefetches the lines that are read after these in products of `M` rows.
#[inline(always)]
pub(super) fn prefetch_lines<const M: usize>(lines: &[Line]) {
    let ahead = Ahead::of_rows::<M>();
    for line in lines {
        prefetch_stream(line, ahead);
    }
}
