//! Ragged batches: rows of one call that belong to sequences of different lengths.

use std::ops::Range;

use super::page_id::{PAGE_LEN, PageId};

/// Layout of a ragged batch: the rows of each sequence, and the pages of its KV cache.
///
/// Built once for a forward pass and shared by its layers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RaggedLayout {
    /// The sequences, in the order of their rows.
    pub sequences: Vec<SequenceLayout>,
}

impl RaggedLayout {
    /// Number of rows of all sequences: the end of the last one's.
    pub fn rows(&self) -> usize {
        self.sequences.last().map_or(0, |sequence| sequence.rows.end)
    }

    /// Each new row with the page and the offset of its slot.
    pub(super) fn places(&self) -> impl Iterator<Item = (usize, PageId, usize)> {
        self.sequences.iter().flat_map(|sequence| {
            sequence.rows.clone().enumerate().map(|(index, row)| {
                let (page, slot) = sequence.place(sequence.cached_len + index);
                (row, page, slot)
            })
        })
    }

    /// Checks that the sequences' rows are disjoint: results of several sequences are written concurrently.
    ///
    /// # Panics
    /// When a range ends before it starts, or starts before the previous one ends.
    pub(crate) fn check_rows(&self) {
        self.sequences.iter().fold(0, |end, SequenceLayout { rows, .. }| {
            assert!(rows.start <= rows.end, "rows {rows:?} end before they start");
            assert!(end <= rows.start, "{rows:?} follows rows that end at {end}");
            rows.end
        });
    }
}

/// One sequence of a ragged batch.
///
/// A *slot* is a position in the sequence's cache: row `i` of the new rows has slot `cached_len + i`, which
/// is in page `block_table[slot / PAGE_LEN]` at offset `slot % PAGE_LEN`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequenceLayout {
    /// Its rows within the batch.
    pub rows: Range<usize>,
    /// Number of slots already in the cache before them.
    pub cached_len: usize,
    /// Block table: the pages of its slots, in order, covering `cached_len + rows.len()`. Pages without a
    /// slot visible to any row may be [`NO_PAGE`](super::page_id::NO_PAGE).
    pub block_table: Vec<PageId>,
    /// Disjoint ranges of its rows, relative to its first, with bidirectional attention within each (an
    /// image's tokens).
    pub bidirectional: Vec<Range<usize>>,
    /// Most slots before and after its own that a row of a bidirectional range attends to: a symmetric window
    /// of `2 * reach + 1` slots. `None`: no such window.
    pub reach: Option<usize>,
}

impl SequenceLayout {
    /// The page and the offset in it of a slot.
    ///
    /// # Panics
    /// When the block table is too short.
    pub fn place(&self, slot: usize) -> (PageId, usize) {
        (self.block_table[slot / PAGE_LEN], slot % PAGE_LEN)
    }

    /// First slot visible to any of its rows: its first row's.
    pub fn first_visible(&self, window: Option<usize>) -> usize {
        window.map_or(0, |window| (self.cached_len + 1).saturating_sub(window))
    }

    /// Range of slots that row `row` (relative to the sequence's first) attends to.
    ///
    /// For its own slot `p` that is `p - window < slot <= p`, or all up to `p` without a window. For a row in
    /// a bidirectional range the end is the range's end, regardless of the window; the window limits its
    /// start, and [`reach`](Self::reach) both.
    ///
    /// # Source
    /// `create_masks_for_vision_model` of Gemma 3 in transformers 5.23.0: (causal or same image) and within
    /// the window.
    pub fn visible(&self, row: usize, window: Option<usize>) -> Range<usize> {
        let slot = self.cached_len + row;
        let first = window.map_or(0, |window| (slot + 1).saturating_sub(window));
        match self.bidirectional.iter().find(|range| range.contains(&row)) {
            Some(range) => {
                let reach = self.reach.unwrap_or(usize::MAX);
                let end = slot.saturating_add(reach).saturating_add(1);
                first.max(slot.saturating_sub(reach))..end.min(self.cached_len + range.end)
            }
            None => first..slot + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_rows<const N: usize>(rows: [Range<usize>; N]) {
        let sequence = |rows| SequenceLayout { rows, ..Default::default() };
        RaggedLayout { sequences: rows.map(sequence).into() }.check_rows();
    }

    #[test]
    fn rows_may_leave_gaps() {
        check_rows([0..3, 3..3, 5..6]);
    }

    #[test]
    #[should_panic(expected = "2..4 follows rows that end at 3")]
    fn rows_of_two_sequences_are_rejected() {
        check_rows([0..3, 2..4]);
    }

    /// Such a range is empty; its end would allow the next sequence to overlap the rows before it.
    #[test]
    #[should_panic(expected = "rows 5..2 end before they start")]
    fn rows_that_end_before_they_start_are_rejected() {
        #[allow(clippy::reversed_empty_ranges, reason = "the range under test")]
        check_rows([0..5, 5..2, 2..4]);
    }

    #[test]
    fn window_counts_the_query_itself() {
        let sequence = SequenceLayout { rows: 0..8, cached_len: 4, ..Default::default() };
        assert_eq!(sequence.visible(3, None), 0..8);
        assert_eq!(sequence.visible(3, Some(1)), 7..8);
        assert_eq!(sequence.visible(3, Some(5)), 3..8);
        assert_eq!(sequence.visible(3, Some(100)), 0..8);
    }

    #[test]
    fn bidirectional_range_starts_at_the_window() {
        let sequence =
            SequenceLayout { rows: 0..9, cached_len: 10, bidirectional: vec![2..7], ..Default::default() };
        assert_eq!(sequence.visible(1, None), 0..12);
        assert_eq!(sequence.visible(2, None), 0..17);
        assert_eq!(sequence.visible(2, Some(2)), 11..17);
        assert_eq!(sequence.visible(6, Some(2)), 15..17);
        assert_eq!(sequence.visible(6, Some(100)), 0..17);
        assert_eq!(sequence.visible(7, Some(2)), 16..18);
    }

    #[test]
    fn reach_limits_both_sides_of_a_bidirectional_range() {
        let sequence = |reach| SequenceLayout {
            rows: 0..9,
            cached_len: 10,
            bidirectional: vec![2..7],
            reach: Some(reach),
            ..Default::default()
        };
        assert_eq!(sequence(0).visible(4, None), 14..15);
        assert_eq!(sequence(1).visible(4, None), 13..16);
        assert_eq!(sequence(1).visible(6, None), 15..17);
        assert_eq!(sequence(1).visible(7, None), 0..18);
        assert_eq!(sequence(usize::MAX).visible(2, None), 0..17);
    }
}
