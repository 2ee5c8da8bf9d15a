//! Quantised weights as files hold them: row by row, apart from the layout that the kernels read.

use std::sync::{Mutex, PoisonError};

use half::f16;

use super::block::Quants;
use super::{
    BLOCK, Block, Buffer, LANES, PackedMatrix, Pool, Q4Block, Q8Block, Unfit, WeightFormat, for_each_chunk,
};
use crate::{Error, Result};

/// A quantised weight `[rows, cols]` in the form for files, borrowed from wherever it is.
///
/// The rows follow one another, each cut in blocks of 32 columns; what the last block lacks is zero. A weight is its
/// quant times its block's scale.
#[derive(Clone, Copy, Debug)]
pub struct StoredMatrix<'a> {
    /// Q8 or Q4.
    pub format: WeightFormat,
    /// Outputs.
    pub rows: usize,
    /// Inputs.
    pub cols: usize,
    /// `[rows, blocks, block_bytes]`. Q8: 32 signed bytes, -127 to 127. Q4: 16 bytes, byte `j` with column `j` in its low and
    /// column `j + 16` in its high half, each plus 8.
    pub quants: &'a [u8],
    /// `[rows, blocks]`, little-endian `f16`.
    pub scales: &'a [u8],
}

/// The bytes of a [`StoredMatrix`], owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBytes {
    /// As [`StoredMatrix::quants`].
    pub quants: Vec<u8>,
    /// As [`StoredMatrix::scales`].
    pub scales: Vec<u8>,
}

impl WeightFormat {
    /// Bytes of a block of 32 quants in a file: 32 for Q8, 16 for Q4; `None` for the float formats.
    pub fn stored_block_bytes(self) -> Option<usize> {
        match self {
            WeightFormat::Q8 => Some(BLOCK),
            WeightFormat::Q4 => Some(BLOCK / 2),
            WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 => None,
        }
    }
}

impl PackedMatrix {
    /// Packs a weight that was quantised before; the values are taken over bit by bit.
    ///
    /// # Errors
    /// - [`Error::SourceLength`] when `quants` or `scales` have not as many elements as the shape asks for
    /// - [`Error::NotRepresentable`] names the first scale that is not finite, or a quant of -128
    /// - [`Error::ShapeOverflow`], [`Error::OutOfMemory`] when there is no room
    ///
    /// # Panics
    /// When the format is a float format.
    pub fn from_stored(stored: StoredMatrix<'_>) -> Result<Self> {
        let StoredMatrix { format, rows, cols, quants, scales } = stored;
        let block_bytes = format.stored_block_bytes().expect("only Q8 and Q4 are stored in blocks");
        let overflow = || Error::ShapeOverflow { shape: vec![rows, cols] };
        let blocks = rows.checked_mul(cols.div_ceil(BLOCK)).ok_or_else(overflow)?;
        for (expected, got) in
            [(blocks.checked_mul(block_bytes), quants.len()), (blocks.checked_mul(2), scales.len())]
        {
            let expected = expected.ok_or_else(overflow)?;
            if expected != got {
                return Err(Error::SourceLength { rows, cols, expected, got });
            }
        }
        let tile_bytes = format.tile_bytes(cols).ok_or_else(overflow)?;
        let bytes = tile_bytes.checked_mul(rows.div_ceil(LANES)).ok_or_else(overflow)?;
        let mut buffer = Buffer::zeroed(bytes)?;
        let first_bad: Mutex<Option<Unfit>> = Mutex::new(None);
        for_each_chunk(Pool::global(), buffer.bytes_mut(), tile_bytes, |tile, out| {
            let read = match format {
                WeightFormat::Q8 => stored.read_tile::<Q8Block>(tile * LANES, out, signed_bytes),
                _ => stored.read_tile::<Q4Block>(tile * LANES, out, nibbles),
            };
            if let Err(bad) = read {
                let mut first = first_bad.lock().unwrap_or_else(PoisonError::into_inner);
                if first.as_ref().is_none_or(|first| (bad.row, bad.col) < (first.row, first.col)) {
                    *first = Some(bad);
                }
            }
        });
        match first_bad.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(Unfit { row, col, value }) => Err(Error::NotRepresentable { row, col, value, format }),
            None => Ok(Self { format, rows, cols, buffer }),
        }
    }

    /// The weight in the form for files; `None` for the float formats, which files hold as they are.
    pub fn to_stored(&self) -> Option<StoredBytes> {
        let block_bytes = self.format.stored_block_bytes()?;
        let blocks = self.cols.div_ceil(BLOCK);
        let mut quants = Vec::with_capacity(self.rows * blocks * block_bytes);
        let mut scales = Vec::with_capacity(self.rows * blocks * 2);
        for row in 0..self.rows {
            for block in 0..blocks {
                let (scale, values) = self.block(row, block);
                scales.extend(f16::from_f32(scale).to_le_bytes());
                match self.format {
                    WeightFormat::Q8 => quants.extend(values.map(|value| value as u8)),
                    _ => quants.extend(
                        (0..BLOCK / 2).map(|j| nibble(values[j]) | nibble(values[j + BLOCK / 2]) << 4),
                    ),
                }
            }
        }
        Some(StoredBytes { quants, scales })
    }
}

impl StoredMatrix<'_> {
    /// Lays out 16 rows for the kernels.
    fn read_tile<B: Block>(
        &self,
        first_row: usize,
        out: &mut [u8],
        decode: fn(&[u8]) -> [i16; BLOCK],
    ) -> std::result::Result<(), Unfit> {
        let blocks = self.cols.div_ceil(BLOCK);
        let block_bytes = self.format.stored_block_bytes().unwrap_or_default();
        let out: &mut [B] = bytemuck::cast_slice_mut(out);
        for (index, block) in out.iter_mut().enumerate() {
            let mut quants: Quants = [[0; 2 * LANES]; BLOCK / 2];
            let mut scales = [0; LANES];
            for (lane, row) in (first_row..self.rows.min(first_row + LANES)).enumerate() {
                let at = row * blocks + index;
                let scale = f16::from_le_bytes([self.scales[2 * at], self.scales[2 * at + 1]]);
                let col = index * BLOCK;
                if !scale.is_finite() {
                    return Err(Unfit { row, col, value: scale.to_f32() });
                }
                scales[lane] = scale.to_bits();
                let width = BLOCK.min(self.cols - col);
                let values = decode(&self.quants[at * block_bytes..][..block_bytes]);
                for (column, &value) in values[..width].iter().enumerate() {
                    if value == i16::from(i8::MIN) {
                        return Err(Unfit { row, col: col + column, value: value.into() });
                    }
                    quants[column / 2][2 * lane + column % 2] = value;
                }
            }
            *block = B::new(&quants, scales);
        }
        Ok(())
    }
}

fn signed_bytes(bytes: &[u8]) -> [i16; BLOCK] {
    std::array::from_fn(|column| i16::from(bytes[column] as i8))
}

fn nibbles(bytes: &[u8]) -> [i16; BLOCK] {
    let half = BLOCK / 2;
    let nibble = |column: usize| if column < half { bytes[column] & 15 } else { bytes[column - half] >> 4 };
    std::array::from_fn(|column| i16::from(nibble(column)) - 8)
}

fn nibble(value: i8) -> u8 {
    (value + 8) as u8 & 15
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Source;

    fn packed(format: WeightFormat, rows: usize, cols: usize) -> PackedMatrix {
        let values: Vec<f32> = (0..rows * cols).map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.01).collect();
        PackedMatrix::pack(format, rows, cols, Source::F32(&values)).expect("finite values")
    }

    fn stored(format: WeightFormat, rows: usize, cols: usize, bytes: &StoredBytes) -> StoredMatrix<'_> {
        StoredMatrix { format, rows, cols, quants: &bytes.quants, scales: &bytes.scales }
    }

    proptest! {
        #[test]
        fn what_is_stored_comes_back_bit_by_bit(q4: bool, rows in 1..40_usize, cols in 1..100_usize) {
            let format = if q4 { WeightFormat::Q4 } else { WeightFormat::Q8 };
            let before = packed(format, rows, cols);
            let bytes = before.to_stored().expect("a quantised format");
            let after = PackedMatrix::from_stored(stored(format, rows, cols, &bytes)).expect("just written");
            prop_assert_eq!(before.buffer.bytes(), after.buffer.bytes());
        }
    }

    #[test]
    fn the_form_is_the_documented_one() {
        let mut values = [0.0_f32; 33];
        (values[0], values[16], values[32]) = (-8.0, 7.0, -8.0);
        let matrix =
            PackedMatrix::pack(WeightFormat::Q4, 1, 33, Source::F32(&values)).expect("finite values");
        let StoredBytes { quants, scales } = matrix.to_stored().expect("a quantised format");
        assert_eq!((quants.len(), scales.len()), (32, 4));
        assert_eq!((quants[0] & 15, quants[1], quants[16] & 15), (0, 0x88, 0), "{quants:?}");
    }

    #[test]
    fn bytes_that_lie_are_refused_by_their_place() {
        let good = packed(WeightFormat::Q8, 3, 40).to_stored().expect("a quantised format");
        let check = |change: fn(&mut StoredBytes), expected: &str| {
            let mut bytes = good.clone();
            change(&mut bytes);
            let error =
                PackedMatrix::from_stored(stored(WeightFormat::Q8, 3, 40, &bytes)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error:?} does not say {expected:?}");
        };
        check(|bytes| bytes.quants.truncate(100), "[3, 40]");
        check(|bytes| bytes.scales.push(0), "[3, 40]");
        check(
            |bytes| bytes.scales[10..12].copy_from_slice(&f16::NAN.to_le_bytes()),
            "row 2, column 32 is NaN",
        );
        check(|bytes| bytes.quants[64 + 5] = 0x80, "row 1, column 5 is -128");
    }

    #[test]
    fn float_formats_are_not_stored_in_blocks() {
        assert_eq!(packed(WeightFormat::F16, 2, 2).to_stored(), None);
    }
}
