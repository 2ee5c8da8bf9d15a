//! Sharing a slice that is written to among the tasks of a [`Pool`].

use std::marker::PhantomData;
use std::ops::Range;

use super::pool::Pool;

/// Calls `task` with each block of the row-major `data`: the rows of one of `parts`, and `columns` neighbouring columns (fewer in
/// the last).
///
/// # Panics
/// When `parts` overlap, are out of order or reach outside.
pub(super) fn for_each_block<T: Send>(
    pool: &Pool,
    data: &mut [T],
    width: usize,
    parts: &[Range<usize>],
    columns: usize,
    task: impl Fn(Block<'_, T>) + Sync,
) {
    if data.is_empty() {
        return;
    }
    assert!(data.len().is_multiple_of(width), "{} elements in rows of {width}", data.len());
    let end = parts.iter().fold(0, |end, part| {
        assert!(end <= part.start && part.start <= part.end, "{part:?} follows rows that end at {end}");
        part.end
    });
    assert!(end <= data.len() / width, "{end} rows of {}", data.len() / width);
    let base = Base(data.as_mut_ptr());
    let across = width.div_ceil(columns);
    pool.run(parts.len() * across, |index| {
        let (part, column) = (index / across, index % across * columns);
        let (rows, columns) = (parts[part].clone(), column..(column + columns).min(width));
        task(Block { base: base.get(), part, rows, width, columns, data: PhantomData });
    });
}

/// Calls `task` with each block of `columns` neighbouring columns of the row-major `data`; the last may be narrower.
pub(super) fn for_each_column_block<T: Send>(
    pool: &Pool,
    data: &mut [T],
    width: usize,
    columns: usize,
    task: impl Fn(Block<'_, T>) + Sync,
) {
    let rows = data.len().checked_div(width).unwrap_or(0);
    for_each_block(pool, data, width, std::slice::from_ref(&(0..rows)), columns, task);
}

/// Calls `task` with each piece of `len` neighbouring elements of `data` and its number; the last may be shorter.
pub(super) fn for_each_chunk<T: Send>(
    pool: &Pool,
    data: &mut [T],
    len: usize,
    task: impl Fn(usize, &mut [T]) + Sync,
) {
    let width = data.len();
    for_each_column_block(pool, data, width, len, |mut block| {
        let index = block.columns().start / len;
        task(index, block.row(0));
    });
}

struct Base<T>(*mut T);

// SAFETY: tasks reach disjoint elements through it (each is in one block), and elements may be sent.
unsafe impl<T: Send> Sync for Base<T> {}

impl<T> Base<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

/// A row-major matrix whose parts are written by several tasks.
pub(super) struct SharedMatrix<'a, T> {
    base: Base<T>,
    rows: usize,
    width: usize,
    data: PhantomData<&'a mut [T]>,
}

impl<'a, T: Send> SharedMatrix<'a, T> {
    /// Shares `data` in rows of `width`.
    pub fn new(data: &'a mut [T], width: usize) -> Self {
        let rows = data.len().checked_div(width).unwrap_or(0);
        Self { base: Base(data.as_mut_ptr()), rows, width, data: PhantomData }
    }

    /// Some rows and columns, to be written.
    ///
    /// # Safety
    /// While the block is there, no other one has any of its elements.
    pub unsafe fn block(&self, rows: Range<usize>, columns: Range<usize>) -> Block<'_, T> {
        assert!(rows.end <= self.rows && columns.end <= self.width, "{rows:?}, {columns:?} leave the matrix");
        Block { base: self.base.get(), part: 0, rows, width: self.width, columns, data: PhantomData }
    }
}

/// Some rows and columns of a matrix, to be written by one task.
pub(super) struct Block<'a, T> {
    base: *mut T,
    part: usize,
    rows: Range<usize>,
    width: usize,
    columns: Range<usize>,
    data: PhantomData<&'a mut [T]>,
}

impl<T> Block<'_, T> {
    /// Which of the parts its rows are.
    pub fn part(&self) -> usize {
        self.part
    }

    /// How many rows it has.
    #[inline(always)]
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Which columns it has.
    #[inline(always)]
    pub fn columns(&self) -> Range<usize> {
        self.columns.clone()
    }

    /// The elements of its row `row`, counted from its first.
    #[inline(always)]
    pub fn row(&mut self, row: usize) -> &mut [T] {
        assert!(row < self.rows.len(), "row {row} of {}", self.rows.len());
        // SAFETY: the row is inside the slice (`for_each_block` has checked the parts), and `columns.start <= width`.
        let start = unsafe { self.base.add((self.rows.start + row) * self.width + self.columns.start) };
        // SAFETY: `columns.end <= width`; no other block has these elements, and `&mut self` keeps this one's rows apart.
        unsafe { std::slice::from_raw_parts_mut(start, self.columns.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_reached_once() {
        let pool = Pool::new(3);
        for (parts, width, columns) in [
            (vec![0..1], 1, 1),
            (vec![0..2, 2..3], 10, 4),
            (vec![0..1, 1..1, 1..5], 64, 16),
            (vec![0..2], 7, 100),
        ] {
            let rows = parts.last().unwrap().end;
            let mut data = vec![0_usize; rows * width];
            for_each_block(&pool, &mut data, width, &parts, columns, |mut block| {
                for row in 0..block.rows() {
                    let first = (parts[block.part()].start + row) * width + block.columns().start;
                    for (i, value) in block.row(row).iter_mut().enumerate() {
                        *value += first + i + 1;
                    }
                }
            });
            assert!(data.iter().enumerate().all(|(i, &value)| value == i + 1), "{data:?}");
        }
    }

    #[test]
    fn chunks_are_numbered_and_the_last_is_short() {
        let mut data = vec![0; 11];
        for_each_chunk(&Pool::new(2), &mut data, 4, |index, chunk| chunk.fill(index * 10 + chunk.len()));
        assert_eq!(data, [4, 4, 4, 4, 14, 14, 14, 14, 23, 23, 23]);
        for_each_chunk(&Pool::new(2), &mut Vec::<u8>::new(), 4, |_, _| panic!("there is nothing"));
    }

    #[test]
    #[should_panic(expected = "row 2 of 2")]
    fn a_row_outside_is_refused() {
        for_each_column_block(&Pool::new(1), &mut [0; 4], 2, 2, |mut part| part.row(2).fill(1));
    }

    #[test]
    #[should_panic(expected = "1..2 follows rows that end at 2")]
    fn overlapping_rows_are_refused() {
        for_each_block(&Pool::new(1), &mut [0; 4], 2, &[0..2, 1..2], 2, |_| ());
    }

    #[test]
    #[should_panic(expected = "3 rows of 2")]
    fn rows_outside_are_refused() {
        for_each_block(&Pool::new(1), &mut [0; 4], 2, &[0..1, 1..3], 2, |_| ());
    }
}
