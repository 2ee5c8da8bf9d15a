//! Reading of a parameter's stored rows.

use std::borrow::Cow;
use std::ops::Range;

use lm_formats::FileBytes;

use super::TensorType;
use super::fp8_mxfp4_scales::Scales;
use super::gptq_awq_groups::Groups;

/// Rows of one parameter, in their files.
pub(crate) struct StoredRows<'a> {
    pub(super) ty: TensorType,
    pub(super) row_bytes: usize,
    pub(super) values: StoredValues,
    pub(super) runs: Vec<Run<'a>>,
}

/// Rows of one tensor.
pub(super) struct Run<'a> {
    pub(super) file: &'a FileBytes,
    /// Offset of the tensor in the file.
    pub(super) start: usize,
    pub(super) first: usize,
    pub(super) step: usize,
    pub(super) count: usize,
    pub(super) order: RowOrder,
    pub(super) coding: Coding<'a>,
}

/// Encoding of a tensor's rows.
#[derive(Clone)]
pub(super) enum Coding<'a> {
    /// Plain rows.
    Rows,
    /// Rows of codes with scales in another tensor.
    Scaled(Scales<'a>),
    /// Group-wise codes with scales and zero points in two other tensors.
    Groups(Groups<'a>),
    /// Matrices `[height, of]`, each with `per_matrix` of the rows among the columns of its first `inputs`
    /// rows; `first` and `step` count columns.
    Columns { inputs: usize, height: usize, of: usize, per_matrix: usize },
}

/// Row order of a tensor in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RowOrder {
    /// The model's order.
    #[default]
    Same,
    /// Interleaved RoPE pairs: rows `j` and `head_dim / 2 + j` of a head, which RoPE rotates together, are
    /// adjacent.
    InterleavedRope {
        /// Number of rows of a head, even.
        head_dim: usize,
    },
}

/// Transformation of a vector's values in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum StoredValues {
    /// Values as they are.
    #[default]
    Same,
    /// Values plus one, as Gemma's norm weights are applied.
    PlusOne,
    /// `-exp` of the values, as the decay of a delta net is applied.
    NegatedExp,
}

impl RowOrder {
    /// Returns the position of a model row in the file.
    fn stored(self, row: usize) -> usize {
        match self {
            Self::Same => row,
            Self::InterleavedRope { head_dim } => {
                let (head, row) = (row / head_dim, row % head_dim);
                let (half, pair) = (row / (head_dim / 2), row % (head_dim / 2));
                head * head_dim + 2 * pair + half
            }
        }
    }
}

impl RowOrder {
    /// Returns the model position of each of a file's rows; `None` if the order is the same.
    pub(crate) fn model_rows(self, count: usize) -> Option<Vec<usize>> {
        if self == Self::Same {
            return None;
        }
        let mut rows = vec![0; count];
        (0..count).for_each(|row| rows[self.stored(row)] = row);
        Some(rows)
    }
}

impl StoredValues {
    /// Transforms the model's values to the file's.
    pub(crate) fn store(self, values: &mut [f32]) {
        match self {
            Self::Same => {}
            Self::PlusOne => values.iter_mut().for_each(|value| *value += 1.0),
            Self::NegatedExp => {
                values.iter_mut().for_each(|value| *value = -f64::from(*value).exp() as f32);
            }
        }
    }

    /// Transforms the file's values to the model's.
    ///
    /// # Errors
    /// A value that is not a transformed value of the model.
    pub(super) fn restore(self, values: &mut [f32]) -> Result<(), f32> {
        match self {
            Self::Same => {}
            Self::PlusOne => values.iter_mut().for_each(|value| *value -= 1.0),
            Self::NegatedExp => {
                for value in values {
                    // In double precision: the only error left is the rounding of the stored number.
                    let restored = (-f64::from(*value)).ln() as f32;
                    *value = if restored.is_finite() { restored } else { return Err(*value) };
                }
            }
        }
        Ok(())
    }
}

impl<'a> Run<'a> {
    /// Byte range of some rows in the file, if they are contiguous.
    fn byte_range(&self, rows: Range<usize>, row_bytes: usize) -> Option<Range<usize>> {
        let follow = matches!(self.coding, Coding::Rows)
            && self.order == RowOrder::Same
            && (self.step == 1 || rows.len() <= 1);
        let first = self.start + (self.first + rows.start * self.step) * row_bytes;
        follow.then(|| first..first + rows.len() * row_bytes)
    }

    /// Appends a row to `out`.
    fn read(&self, row: usize, row_bytes: usize, out: &mut Vec<u8>) {
        let stored = |row| {
            let start = self.start + row * row_bytes;
            &self.file[start..start + row_bytes]
        };
        match &self.coding {
            Coding::Rows => out.extend_from_slice(stored(self.order.stored(self.first + row * self.step))),
            Coding::Scaled(scales) => {
                let row = self.first + row * self.step;
                scales.decode(row, stored(row), out);
            }
            Coding::Groups(groups) => groups.decode([self.first + row * self.step].into_iter(), out),
            &Coding::Columns { inputs, height, of, per_matrix } => {
                let size = row_bytes / inputs.max(1);
                let matrix = self.start + row / per_matrix * height * of * size;
                let column = self.first + row % per_matrix * self.step;
                for input in 0..inputs {
                    let start = matrix + (input * of + column) * size;
                    out.extend_from_slice(&self.file[start..start + size]);
                }
            }
        }
    }

    /// Byte range that covers some rows in the file, including others between them; for columns, the matrices
    /// that these rows complete.
    fn extent(&self, rows: Range<usize>, row_bytes: usize) -> Range<usize> {
        if rows.is_empty() {
            return self.start..self.start;
        }
        if let Coding::Columns { inputs, height, of, per_matrix } = self.coding {
            let matrix_bytes = row_bytes / inputs.max(1) * height * of;
            let ended = rows.start / per_matrix..rows.end / per_matrix;
            return self.start + ended.start * matrix_bytes..self.start + ended.end * matrix_bytes;
        }
        let last = self.first + (rows.end - 1) * self.step;
        let first = self.first + rows.start * self.step;
        self.start + first * row_bytes..self.start + (last + 1) * row_bytes
    }

    /// Releases the memory of some rows.
    fn release(&self, rows: Range<usize>, row_bytes: usize) {
        // Rows of group-wise codes are spread over their whole tensor.
        if matches!(self.coding, Coding::Groups(_)) && rows.len() < self.count {
            return;
        }
        if let Coding::Scaled(scales) = &self.coding {
            scales.release(rows.clone(), self.count);
        }
        self.file.release(self.extent(rows, row_bytes));
    }
}

impl<'a> StoredRows<'a> {
    /// Element type of the rows.
    pub(crate) fn ty(&self) -> TensorType {
        self.ty
    }

    /// Size of all rows in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.runs.iter().map(|run| run.count * self.row_bytes).sum()
    }

    /// Reads the bytes of some rows; copies them only if they are not contiguous in the file.
    pub(crate) fn read(&self, rows: Range<usize>) -> Cow<'a, [u8]> {
        let mut copied = Vec::new();
        for (run, part) in self.overlapping(rows.clone()) {
            match run.byte_range(part.clone(), self.row_bytes) {
                Some(range) if part.len() == rows.len() => return Cow::Borrowed(&run.file[range]),
                Some(range) => copied.extend_from_slice(&run.file[range]),
                None => part.for_each(|row| run.read(row, self.row_bytes, &mut copied)),
            }
        }
        Cow::Owned(copied)
    }

    /// Checks that no file has shrunk since it was opened.
    pub(crate) fn check_files(&self) -> lm_kernels::Result<()> {
        self.runs.iter().try_for_each(|run| match &run.coding {
            Coding::Scaled(scales) => run.file.check_len().and_then(|()| scales.file.check_len()),
            Coding::Rows | Coding::Groups(_) | Coding::Columns { .. } => run.file.check_len(),
        })
    }

    /// Reads the bytes of all rows.
    pub(crate) fn read_all(&self) -> Cow<'a, [u8]> {
        self.read(0..self.runs.iter().map(|run| run.count).sum())
    }

    /// Releases the memory of some rows, which are not read again soon.
    ///
    /// If the file has another row order, this is left to [`StoredRows::release_all`].
    pub(crate) fn release(&self, rows: Range<usize>) {
        for (run, part) in self.overlapping(rows) {
            if run.order == RowOrder::Same {
                run.release(part, self.row_bytes);
            }
        }
    }

    /// Releases the memory of all rows.
    pub(crate) fn release_all(&self) {
        for run in &self.runs {
            run.release(0..run.count, self.row_bytes);
        }
    }

    /// Iterates over the runs that overlap some rows, each with its own rows among them.
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
    use super::super::{Checkpoint, StoredCoding, StoredTensor, TensorLocation};
    use super::*;
    use lm_formats::GgufTensorType;

    /// Tensors `a` and `b` `[4, 2]` of bytes, concatenated; the byte in row `r` and column `c` of both
    /// together is `10 r + c`.
    fn checkpoint(order: RowOrder) -> Checkpoint {
        let bytes: Vec<u8> = (0..8).flat_map(|row| [10 * row, 10 * row + 1]).collect();
        let ty = TensorType::of_gguf(GgufTensorType::from_name("I8").unwrap());
        let tensor = |start| {
            let (shape, values, coding) = (vec![4, 2], StoredValues::Same, StoredCoding::Rows);
            StoredTensor { file: 0, ty, shape, range: start..start + 8, order, values, coding }
        };
        let mut checkpoint = Checkpoint::new("test".into());
        let tensors = [("a".to_owned(), tensor(0)), ("b".to_owned(), tensor(8))];
        checkpoint.add_tensors("f", FileBytes::Owned(bytes.into()), tensors).unwrap();
        checkpoint
    }

    /// The first bytes of some rows, and true if they were read in place.
    fn read(order: RowOrder, location: &TensorLocation, rows: Range<usize>) -> (Vec<u8>, bool) {
        let checkpoint = checkpoint(order);
        let stored = checkpoint.rows(location).unwrap();
        let bytes = stored.read(rows.clone());
        stored.release(rows);
        stored.release_all();
        (bytes.chunks(2).map(|row| row[0]).collect(), matches!(bytes, Cow::Borrowed(_)))
    }

    #[test]
    fn rows_are_read_from_every_location() {
        let same = RowOrder::Same;
        assert_eq!(read(same, &TensorLocation::whole("b"), 1..3), (vec![50, 60], true));
        assert_eq!(read(same, &TensorLocation::part("b", 1..4, 4), 1..3), (vec![60, 70], true));
        assert_eq!(read(same, &TensorLocation::strided("a", 2, 1, 4), 0..2), (vec![10, 30], false));
        assert_eq!(read(same, &TensorLocation::strided("a", 2, 1, 4), 1..2), (vec![30], true));
        let both = TensorLocation::stacked(["b".to_owned(), "a".to_owned()]);
        assert_eq!(read(same, &both, 0..8).0, [40, 50, 60, 70, 0, 10, 20, 30]);
        assert_eq!(read(same, &both, 3..5), (vec![70, 0], false));
        assert_eq!(read(same, &both, 4..6), (vec![0, 10], true));
    }

    #[test]
    fn interleaved_rope_rows_are_separated() {
        let order = RowOrder::InterleavedRope { head_dim: 4 };
        assert_eq!(read(order, &TensorLocation::whole("a"), 0..4), (vec![0, 20, 10, 30], false));
        assert_eq!(read(order, &TensorLocation::whole("b"), 1..3), (vec![60, 50], false));
        assert_eq!(
            read(RowOrder::InterleavedRope { head_dim: 2 }, &TensorLocation::whole("a"), 0..4).0,
            [0, 10, 20, 30]
        );
    }

    #[test]
    fn shapes_match_the_location() {
        let checkpoint = checkpoint(RowOrder::Same);
        let shape_of = |location: &TensorLocation, shape| checkpoint.check_shape_of(location, shape).is_ok();
        assert!(
            shape_of(&TensorLocation::whole("a"), &[4, 2]) && !shape_of(&TensorLocation::whole("a"), &[2, 4])
        );
        assert!(
            shape_of(&TensorLocation::part("a", 0..3, 4), &[3, 2])
                && !shape_of(&TensorLocation::part("a", 0..3, 5), &[3, 2])
        );
        assert!(shape_of(&TensorLocation::stacked(["a".into(), "b".into()]), &[8, 2]));
    }

    /// Element `i` of two matrices `[3, 4]` of bfloat16 is `i`.
    #[test]
    fn columns_become_rows() {
        let bytes: Vec<u8> = (0..24).flat_map(|i| half::bf16::from_f32(i as f32).to_le_bytes()).collect();
        let (ty, shape) = (TensorType::Plain(safetensors::Dtype::BF16), vec![2, 3, 4]);
        let (order, values) = (RowOrder::Same, StoredValues::Same);
        let tensor =
            StoredTensor { file: 0, ty, shape, range: 0..48, order, values, coding: StoredCoding::Rows };
        let mut checkpoint = Checkpoint::new("test".into());
        checkpoint.add_tensors("f", FileBytes::Owned(bytes.into()), [("m".to_owned(), tensor)]).unwrap();
        let location = TensorLocation::columns("m", [2, 3, 4], 2, 1);
        checkpoint.check(&location, &[4, 3]).unwrap();
        assert!(checkpoint.check(&TensorLocation::columns("m", [2, 4, 3], 1, 0), &[6, 4]).is_err());
        let rows = checkpoint.rows(&location).unwrap();
        let read = |range| -> Vec<f32> {
            let bytes = rows.read(range);
            bytes.as_chunks::<2>().0.iter().map(|bytes| half::bf16::from_le_bytes(*bytes).to_f32()).collect()
        };
        assert_eq!(read(0..2), [1.0, 5.0, 9.0, 3.0, 7.0, 11.0]);
        assert_eq!(read(1..3), [3.0, 7.0, 11.0, 13.0, 17.0, 21.0]);
        rows.release(0..3);
        rows.release_all();
        assert_eq!(read(3..4), [15.0, 19.0, 23.0]);
    }
}
