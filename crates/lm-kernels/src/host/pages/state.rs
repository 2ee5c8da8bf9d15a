//! Paged recurrent states of a fixed size, one per page.

use std::collections::HashMap;
use std::ops::Range;

use super::super::page_id::{PAGE_LEN, PageId};
use super::super::ragged::{RaggedLayout, SequenceLayout};
use super::super::split::{Block, SharedMatrix};
use super::zeroed;
use crate::error::{Error, Result};

/// A run of rows of a sequence; its state is stored after the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRun {
    /// Rows of the batch.
    pub rows: Range<usize>,
    /// Page of the state before them; `None` is a state of zeros, before the first token.
    pub from: Option<PageId>,
    /// Page that receives the state after them; it may be the same.
    pub to: PageId,
}

impl StateRun {
    /// Returns some columns of the run's output state, initialised with its input state. For a sequence's
    /// first run, `index` 0, [`StatePages::prepare`] has put it there; for a later run it is copied here.
    ///
    /// # Safety
    /// While the block is alive, no other block may contain these columns of the run's pages.
    pub(in crate::host) unsafe fn state<'a>(
        &self,
        index: usize,
        states: &'a SharedMatrix<'_, f32>,
        columns: Range<usize>,
    ) -> Block<'a, f32> {
        let page = |page: u32| page as usize..page as usize + 1;
        // SAFETY: the caller keeps the columns disjoint.
        let mut state = unsafe { states.block(page(self.to), columns.clone()) };
        if index > 0
            && let Some(from) = self.from
        {
            // SAFETY: as above; the previous run has written this page, which differs from `to`.
            state.row(0).copy_from_slice(unsafe { states.block(page(from), columns) }.row(0));
        }
        state
    }
}

impl SequenceLayout {
    /// Splits the sequence's rows into runs: up to the last page boundary within them, where the state is
    /// stored as a snapshot, and from there to the end. At most two, each starting from the state of the one
    /// before it.
    ///
    /// # Panics
    /// When the block table is shorter than the pages that are read and written.
    pub fn state_runs(&self) -> impl Iterator<Item = StateRun> + use<> {
        let (first, end) = (self.cached_len, self.cached_len + self.rows.len());
        let border = end.saturating_sub(1) / PAGE_LEN * PAGE_LEN;
        let border = if border > first { border } else { first };
        let run = |start: usize, end: usize| {
            let page = |slots: usize| self.block_table[(slots - 1) / PAGE_LEN];
            (start < end).then(|| StateRun {
                rows: self.rows.start + start - first..self.rows.start + end - first,
                from: (start > 0).then(|| page(start)),
                to: page(end),
            })
        };
        [run(first, border), run(border, end)].into_iter().flatten()
    }
}

/// State pages of one layer: a page holds the state after the last token written to it.
///
/// ```
/// let mut states = lm_kernels::StatePages::new(2, 3)?; // 2 pages, 3 elements
/// states.get_mut(1).copy_from_slice(&[1.0, 2.0, 3.0]);
/// states.copy_page(1, 0);
/// assert_eq!(states.get(0), [1.0, 2.0, 3.0]);
/// # Ok::<(), lm_kernels::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct StatePages {
    values: Vec<f32>,
    len: usize,
}

impl StatePages {
    /// Allocates pages of zeros with `len` elements each.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`] or [`Error::OutOfMemory`] when there is not enough memory.
    pub fn new(num_pages: usize, len: usize) -> Result<Self> {
        let elements = num_pages.checked_mul(len).filter(|&elements| elements < isize::MAX as usize / 8);
        let elements = elements.ok_or_else(|| Error::ShapeOverflow { shape: vec![num_pages, len] })?;
        Ok(Self { values: zeroed(elements)?, len })
    }

    /// A page's state.
    ///
    /// # Panics
    /// When the page is out of range.
    pub fn get(&self, page: PageId) -> &[f32] {
        &self.values[page as usize * self.len..][..self.len]
    }

    /// A page's state, mutably.
    ///
    /// # Panics
    /// When the page is out of range.
    pub fn get_mut(&mut self, page: PageId) -> &mut [f32] {
        &mut self.values[page as usize * self.len..][..self.len]
    }

    /// Copies each sequence's state to the output page of its first run, and returns the runs of each.
    ///
    /// # Panics
    /// As [`check`](Self::check); the states are then unchanged.
    pub(in crate::host) fn prepare(&mut self, layout: &RaggedLayout) -> Vec<Vec<StateRun>> {
        let sequences = self.check(layout);
        sequences.iter().filter_map(|runs| runs.first()).for_each(|run| self.copy_input_state(run));
        sequences
    }

    /// The runs of each sequence, whose rows and pages may be written concurrently.
    ///
    /// # Panics
    /// When rows of two sequences overlap, a block table is too short or names a page out of range, or a page
    /// that a run writes is also written by another run or read by another sequence.
    pub(crate) fn check(&self, layout: &RaggedLayout) -> Vec<Vec<StateRun>> {
        layout.check_rows();
        let sequences: Vec<Vec<StateRun>> =
            layout.sequences.iter().map(|sequence| sequence.state_runs().collect()).collect();
        let runs = || {
            sequences.iter().enumerate().flat_map(|(index, runs)| runs.iter().map(move |run| (index, run)))
        };
        let mut writers = HashMap::new();
        for (sequence, run) in runs() {
            run.from.iter().chain([&run.to]).for_each(|&page| self.check_page(page));
            if let Some(other) = writers.insert(run.to, sequence) {
                panic!("sequences {other} and {sequence} write page {}", run.to);
            }
        }
        for (sequence, from) in runs().filter_map(|(sequence, run)| Some((sequence, run.from?))) {
            if let Some(other) = writers.get(&from).filter(|&&writer| writer != sequence) {
                panic!("sequence {sequence} reads page {from}, which sequence {other} writes");
            }
        }
        sequences
    }

    /// # Panics
    /// When the page is out of range. Empty states have any number of pages.
    fn check_page(&self, page: PageId) {
        let num_pages = self.values.len().checked_div(self.len).unwrap_or(usize::MAX);
        assert!((page as usize) < num_pages, "page {page} of {num_pages}");
    }

    /// Copies the input state of a run (zeros before the first token) to its output page.
    ///
    /// # Panics
    /// When a page is out of range.
    pub(crate) fn copy_input_state(&mut self, run: &StateRun) {
        match run.from {
            None => self.get_mut(run.to).fill(0.0),
            Some(from) if from != run.to => self.copy_page(from, run.to),
            Some(_) => {}
        }
    }

    /// The pages as rows of a matrix, for tasks with disjoint columns.
    pub(in crate::host) fn share(&mut self) -> SharedMatrix<'_, f32> {
        SharedMatrix::new(&mut self.values, self.len)
    }

    /// Elements of a state.
    pub fn state_len(&self) -> usize {
        self.len
    }

    /// Copies page `from` to page `to`.
    ///
    /// # Panics
    /// When either is out of range.
    pub fn copy_page(&mut self, from: PageId, to: PageId) {
        let from = from as usize * self.len;
        self.values.copy_within(from..from + self.len, to as usize * self.len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks sequences of these cached and new lengths and block tables, over 4 pages.
    fn check<const N: usize>(sequences: [(usize, usize, &[PageId]); N]) {
        let mut layout = RaggedLayout::default();
        for (cached_len, new, pages) in sequences {
            let rows = layout.rows()..layout.rows() + new;
            layout.sequences.push(SequenceLayout {
                rows,
                cached_len,
                block_table: pages.into(),
                ..Default::default()
            });
        }
        StatePages::new(4, 1).unwrap().check(&layout);
    }

    #[test]
    fn sequences_may_continue_from_one_page() {
        check([(32, 1, &[0, 1]), (32, 1, &[0, 2]), (5, 3, &[3])]);
    }

    #[test]
    #[should_panic(expected = "page 4 of 4")]
    fn page_out_of_range_is_rejected() {
        check([(32, 1, &[4, 1])]);
    }

    #[test]
    #[should_panic(expected = "sequences 0 and 1 write page 2")]
    fn page_of_two_sequences_is_rejected() {
        check([(0, 40, &[0, 2]), (5, 1, &[2])]);
    }

    #[test]
    #[should_panic(expected = "sequences 1 and 1 write page 3")]
    fn page_of_two_runs_is_rejected() {
        check([(0, 1, &[1]), (0, 40, &[3, 3])]);
    }

    #[test]
    #[should_panic(expected = "sequence 0 reads page 1, which sequence 1 writes")]
    fn page_read_while_written_is_rejected() {
        check([(32, 1, &[1, 0]), (5, 1, &[1])]);
    }

    #[test]
    fn runs_end_at_the_last_boundary_and_the_end() {
        let runs = |cached_len: usize, rows: usize| -> Vec<_> {
            let block_table = (10..20).collect();
            let sequence =
                SequenceLayout { rows: 3..3 + rows, cached_len, block_table, ..Default::default() };
            sequence
                .state_runs()
                .map(|run| (run.rows.start - 3..run.rows.end - 3, run.from, run.to))
                .collect()
        };
        assert_eq!(runs(0, 0), []);
        assert_eq!(runs(0, 1), [(0..1, None, 10)]);
        assert_eq!(runs(0, 32), [(0..32, None, 10)]);
        assert_eq!(runs(0, 33), [(0..32, None, 10), (32..33, Some(10), 11)]);
        assert_eq!(runs(5, 1), [(0..1, Some(10), 10)]);
        assert_eq!(runs(31, 2), [(0..1, Some(10), 10), (1..2, Some(10), 11)]);
        assert_eq!(runs(32, 1), [(0..1, Some(10), 11)]);
        assert_eq!(runs(20, 100), [(0..76, Some(10), 12), (76..100, Some(12), 13)]);
        assert_eq!(runs(20, 108), [(0..76, Some(10), 12), (76..108, Some(12), 13)]);
    }
}
