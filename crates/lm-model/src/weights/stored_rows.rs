//! Reading the rows of a parameter from where they are stored.

use std::borrow::Cow;
use std::ops::Range;

use super::TensorType;
use crate::model_folder::FileBytes;

/// The rows of one parameter, in their files.
pub(crate) struct StoredRows<'a> {
    pub(super) ty: TensorType,
    pub(super) row_bytes: usize,
    pub(super) values: StoredValues,
    pub(super) runs: Vec<Run<'a>>,
}

/// Rows of one tensor.
pub(super) struct Run<'a> {
    pub(super) file: &'a FileBytes,
    /// Where the tensor begins in the file.
    pub(super) start: usize,
    pub(super) first: usize,
    pub(super) step: usize,
    pub(super) count: usize,
    pub(super) order: RowOrder,
}

/// The order in which a file has the rows of a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RowOrder {
    /// That of the model.
    #[default]
    Same,
    /// Rows `j` and `head_dim / 2 + j` of a head, which RoPE turns together, follow each other.
    RopePairs {
        /// Rows of a head, an even number.
        head_dim: usize,
    },
}

/// What a file has in place of a vector's values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum StoredValues {
    /// The values.
    #[default]
    Same,
    /// Values that are larger by one, as the weights of Gemma's norms are used.
    PlusOne,
}

impl RowOrder {
    /// Where a row of the model is in the file.
    fn stored(self, row: usize) -> usize {
        match self {
            Self::Same => row,
            Self::RopePairs { head_dim } => {
                let (head, row) = (row / head_dim, row % head_dim);
                let (half, pair) = (row / (head_dim / 2), row % (head_dim / 2));
                head * head_dim + 2 * pair + half
            }
        }
    }
}

impl StoredValues {
    /// Makes the model's values of the file's.
    pub(super) fn restore(self, values: &mut [f32]) {
        match self {
            Self::Same => {}
            Self::PlusOne => values.iter_mut().for_each(|value| *value -= 1.0),
        }
    }
}

impl Run<'_> {
    /// Where the bytes of some rows are in the file, if they follow each other.
    fn place(&self, rows: Range<usize>, row_bytes: usize) -> Option<Range<usize>> {
        let follow = self.order == RowOrder::Same && (self.step == 1 || rows.len() <= 1);
        let first = self.start + (self.first + rows.start * self.step) * row_bytes;
        follow.then(|| first..first + rows.len() * row_bytes)
    }

    fn row(&self, row: usize, row_bytes: usize) -> &[u8] {
        let place = self.start + self.order.stored(self.first + row * self.step) * row_bytes;
        &self.file[place..place + row_bytes]
    }

    /// Where all rows are in the file, others between them included.
    fn extent(&self, row_bytes: usize) -> Range<usize> {
        let rows = if self.count == 0 { 0 } else { (self.count - 1) * self.step + 1 };
        self.start + self.first * row_bytes..self.start + (self.first + rows) * row_bytes
    }
}

impl<'a> StoredRows<'a> {
    /// How the elements are stored.
    pub(crate) fn ty(&self) -> TensorType {
        self.ty
    }

    /// Bytes of all rows.
    pub(crate) fn bytes(&self) -> usize {
        self.runs.iter().map(|run| run.count * self.row_bytes).sum()
    }

    /// The bytes of some rows; a copy only where the file has them not one after another.
    pub(crate) fn read(&self, rows: Range<usize>) -> Cow<'a, [u8]> {
        let mut copied = Vec::new();
        for (run, part) in self.overlapping(rows.clone()) {
            match run.place(part.clone(), self.row_bytes) {
                Some(place) if part.len() == rows.len() => return Cow::Borrowed(&run.file[place]),
                Some(place) => copied.extend_from_slice(&run.file[place]),
                None => part.for_each(|row| copied.extend_from_slice(run.row(row, self.row_bytes))),
            }
        }
        Cow::Owned(copied)
    }

    /// The bytes of all rows.
    pub(crate) fn read_all(&self) -> Cow<'a, [u8]> {
        self.read(0..self.runs.iter().map(|run| run.count).sum())
    }

    /// Lets go of the memory that reading some rows took; they will not be read again soon.
    ///
    /// Where they do not follow each other, this waits until [`StoredRows::release_all`].
    pub(crate) fn release(&self, rows: Range<usize>) {
        for (run, part) in self.overlapping(rows) {
            if let Some(place) = run.place(part, self.row_bytes) {
                run.file.release(place);
            }
        }
    }

    /// Lets go of the memory that reading all rows took.
    pub(crate) fn release_all(&self) {
        for run in &self.runs {
            run.file.release(run.extent(self.row_bytes));
        }
    }

    /// The pieces that have some of the rows, with which of theirs.
    fn overlapping(&self, rows: Range<usize>) -> impl Iterator<Item = (&Run<'a>, Range<usize>)> {
        let mut end = 0;
        self.runs.iter().filter_map(move |run| {
            let start = end;
            end += run.count;
            let part = rows.start.max(start)..rows.end.min(end);
            (part.start < part.end).then(|| (run, part.start - start..part.end - start))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Checkpoint, Place, StoredTensor};
    use super::*;
    use crate::GgufTensorType;

    /// Tensors `a` and `b` `[4, 2]` of bytes, one after the other; the byte in row `r` and column `c` of both together is
    /// `10 r + c`.
    fn checkpoint(order: RowOrder) -> Checkpoint {
        let bytes: Vec<u8> = (0..8).flat_map(|row| [10 * row, 10 * row + 1]).collect();
        let ty = TensorType::of_gguf(GgufTensorType::from_name("I8").unwrap());
        let tensor = |start| {
            let (shape, values) = (vec![4, 2], StoredValues::Same);
            StoredTensor { file: 0, ty, shape, range: start..start + 8, order, values }
        };
        let mut checkpoint = Checkpoint::new("test".into());
        let tensors = [("a".to_owned(), tensor(0)), ("b".to_owned(), tensor(8))];
        checkpoint.add_tensors("f", FileBytes::Owned(bytes.into()), tensors).unwrap();
        checkpoint
    }

    /// The first bytes of some rows, and whether they were read in place.
    fn read(order: RowOrder, place: &Place, rows: Range<usize>) -> (Vec<u8>, bool) {
        let checkpoint = checkpoint(order);
        let stored = checkpoint.rows(place).unwrap();
        let bytes = stored.read(rows.clone());
        stored.release(rows);
        stored.release_all();
        (bytes.chunks(2).map(|row| row[0]).collect(), matches!(bytes, Cow::Borrowed(_)))
    }

    #[test]
    fn rows_come_from_wherever_they_are() {
        let same = RowOrder::Same;
        assert_eq!(read(same, &Place::whole("b"), 1..3), (vec![50, 60], true));
        assert_eq!(read(same, &Place::part("b", 1..4, 4), 1..3), (vec![60, 70], true));
        assert_eq!(read(same, &Place::every("a", 2, 1, 4), 0..2), (vec![10, 30], false));
        assert_eq!(read(same, &Place::every("a", 2, 1, 4), 1..2), (vec![30], true));
        let both = Place::stacked(["b".to_owned(), "a".to_owned()]);
        assert_eq!(read(same, &both, 0..8).0, [40, 50, 60, 70, 0, 10, 20, 30]);
        assert_eq!(read(same, &both, 3..5), (vec![70, 0], false));
        assert_eq!(read(same, &both, 4..6), (vec![0, 10], true));
    }

    #[test]
    fn rows_that_rope_turns_together_come_apart() {
        let order = RowOrder::RopePairs { head_dim: 4 };
        assert_eq!(read(order, &Place::whole("a"), 0..4), (vec![0, 20, 10, 30], false));
        assert_eq!(read(order, &Place::whole("b"), 1..3), (vec![60, 50], false));
        assert_eq!(read(RowOrder::RopePairs { head_dim: 2 }, &Place::whole("a"), 0..4).0, [0, 10, 20, 30]);
    }

    #[test]
    fn shapes_are_those_of_the_place() {
        let checkpoint = checkpoint(RowOrder::Same);
        let shape_of = |place: &Place, shape| checkpoint.check_shape_of(place, shape).is_ok();
        assert!(shape_of(&Place::whole("a"), &[4, 2]) && !shape_of(&Place::whole("a"), &[2, 4]));
        assert!(
            shape_of(&Place::part("a", 0..3, 4), &[3, 2]) && !shape_of(&Place::part("a", 0..3, 5), &[3, 2])
        );
        assert!(shape_of(&Place::stacked(["a".into(), "b".into()]), &[8, 2]));
    }
}
