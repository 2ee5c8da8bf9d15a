//! Disjoint mutable access to a slice from the tasks of a [`Pool`].

use std::marker::PhantomData;
use std::ops::Range;

use super::pool::Pool;

/// Calls `task` with the index and elements of each chunk of `len` contiguous elements of `data`; the last
/// may be shorter.
pub(super) fn for_each_chunk<T: Send>(
    pool: &Pool,
    data: &mut [T],
    len: usize,
    task: impl Fn(usize, &mut [T]) + Sync,
) {
    let total = data.len();
    let shared = SharedMatrix::new(data, 1);
    pool.run(total.div_ceil(len.max(1)), |index| {
        // SAFETY: the chunks do not overlap.
        task(index, unsafe { shared.rows(index * len..((index + 1) * len).min(total)) });
    });
}

/// A row-major matrix that several tasks write in disjoint parts.
pub(super) struct SharedMatrix<'a, T> {
    base: *mut T,
    rows: usize,
    width: usize,
    data: PhantomData<&'a mut [T]>,
}

// SAFETY: tasks access disjoint parts (its methods require that), and elements are `Send`.
unsafe impl<T: Send> Sync for SharedMatrix<'_, T> {}

impl<'a, T: Send> SharedMatrix<'a, T> {
    /// Shares `data` as rows of `width` elements; with a width of 0 the number of rows is unlimited.
    pub fn new(data: &'a mut [T], width: usize) -> Self {
        let rows = data.len().checked_div(width).unwrap_or(usize::MAX);
        Self { base: data.as_mut_ptr(), rows, width, data: PhantomData }
    }

    /// Returns a mutable block of rows and columns.
    ///
    /// # Safety
    /// While the block is alive, no other block may contain any of its elements.
    pub unsafe fn block(&self, rows: Range<usize>, columns: Range<usize>) -> Block<'_, T> {
        assert!(rows.end <= self.rows && columns.end <= self.width, "{rows:?}, {columns:?} leave the matrix");
        Block { base: self.base, rows, width: self.width, columns, data: PhantomData }
    }

    /// Returns full rows, contiguous.
    ///
    /// # Safety
    /// As for [`SharedMatrix::block`].
    #[allow(clippy::mut_from_ref, reason = "the caller keeps the parts apart")]
    pub unsafe fn rows(&self, rows: Range<usize>) -> &mut [T] {
        assert!(rows.start <= rows.end && rows.end <= self.rows, "{rows:?} leave the matrix");
        // SAFETY: the rows are inside the slice, which is borrowed for as long as `self`; the caller keeps
        // them disjoint.
        unsafe {
            std::slice::from_raw_parts_mut(self.base.add(rows.start * self.width), rows.len() * self.width)
        }
    }
}

/// A mutable block of rows and columns of a matrix, for one task.
pub(super) struct Block<'a, T> {
    base: *mut T,
    rows: Range<usize>,
    width: usize,
    columns: Range<usize>,
    data: PhantomData<&'a mut [T]>,
}

impl<T> Block<'_, T> {
    /// Number of its rows.
    #[inline(always)]
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Range of its columns.
    #[inline(always)]
    pub fn columns(&self) -> Range<usize> {
        self.columns.clone()
    }

    /// Elements of row `row` of the block, relative to its first.
    #[inline(always)]
    pub fn row(&mut self, row: usize) -> &mut [T] {
        assert!(row < self.rows.len(), "row {row} of {}", self.rows.len());
        // SAFETY: the row is inside the slice (`SharedMatrix::block` has checked), and
        // `columns.start <= width`.
        let start = unsafe { self.base.add((self.rows.start + row) * self.width + self.columns.start) };
        // SAFETY: `columns.end <= width`; no other block has these elements, and `&mut self` makes this
        // access exclusive.
        unsafe { std::slice::from_raw_parts_mut(start, self.columns.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_into_blocks_of_rows_and_columns() {
        let mut data = vec![0; 4 * 10];
        let shared = SharedMatrix::new(&mut data, 10);
        Pool::new(3).run(4, |index| {
            let (rows, columns) = (index / 2 * 2..index / 2 * 2 + 2, index % 2 * 6..[6, 10][index % 2]);
            // SAFETY: four disjoint quarters.
            let mut block = unsafe { shared.block(rows, columns) };
            for row in 0..2 {
                block.row(row).iter_mut().for_each(|value| *value += index + 1);
            }
        });
        let upper = [1, 1, 1, 1, 1, 1, 2, 2, 2, 2];
        let lower = upper.map(|index| index + 2);
        assert_eq!(data, [upper, upper, lower, lower].concat());
    }

    #[test]
    fn chunks_are_numbered_and_the_last_is_shorter() {
        let mut data = vec![0; 11];
        for_each_chunk(&Pool::new(2), &mut data, 4, |index, chunk| chunk.fill(index * 10 + chunk.len()));
        assert_eq!(data, [4, 4, 4, 4, 14, 14, 14, 14, 23, 23, 23]);
        for_each_chunk(&Pool::new(2), &mut Vec::<u8>::new(), 4, |_, _| panic!("there is nothing"));
    }

    #[test]
    #[should_panic(expected = "row 2 of 2")]
    fn row_out_of_range_is_rejected() {
        let mut data = [0; 4];
        let shared = SharedMatrix::new(&mut data, 2);
        // SAFETY: the only block.
        unsafe { shared.block(0..2, 0..2) }.row(2).fill(1);
    }

    #[test]
    #[should_panic(expected = "leave the matrix")]
    fn rows_out_of_range_are_rejected() {
        let mut data = [0; 4];
        let shared = SharedMatrix::new(&mut data, 2);
        // SAFETY: the only block.
        unsafe { shared.block(1..3, 0..2) };
    }

    #[test]
    fn block_reports_its_rows_and_columns() {
        let mut data = [0; 20];
        let shared = SharedMatrix::new(&mut data, 5);
        // SAFETY: the only block.
        let block = unsafe { shared.block(1..4, 2..4) };
        assert_eq!((block.rows(), block.columns()), (3, 2..4));
    }

    #[test]
    #[should_panic(expected = "leave the matrix")]
    fn columns_out_of_range_are_rejected() {
        let mut data = [0; 6];
        let shared = SharedMatrix::new(&mut data, 2);
        // SAFETY: the only block.
        unsafe { shared.block(0..2, 1..3) };
    }

    #[test]
    #[should_panic(expected = "leave the matrix")]
    fn partial_row_is_rejected() {
        let mut data = [0; 5];
        let shared = SharedMatrix::new(&mut data, 2);
        // SAFETY: the only rows.
        unsafe { shared.rows(1..3) };
    }
}
