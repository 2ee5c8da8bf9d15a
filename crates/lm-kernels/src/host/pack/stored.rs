//! Quantised weights as files hold them: row by row, apart from the layout that the kernels read.

use std::sync::{Mutex, PoisonError};

use half::bf16;

use super::q4::MAX_SCALE;
use super::{
    Buffer, GROUP, IntegerLayout, LANES, PackedMatrix, Pool, Q4, Q8, Tile, Unfit, WeightFormat,
    for_each_chunk, tile_mut,
};
use crate::host::lanes::Line;
use crate::{Error, Result};

/// A quantised weight `[rows, cols]` in the form for files, borrowed from wherever it is.
///
/// The rows follow one another, each cut in groups of 32 columns and blocks of 64 (Q8) or 256 (Q4); what the last group
/// lacks is zero. A weight is its quant times its block's scale, in Q4 times its group's factor as well.
#[derive(Clone, Copy, Debug)]
pub struct StoredMatrix<'a> {
    /// Q8 or Q4.
    pub format: WeightFormat,
    /// Outputs.
    pub rows: usize,
    /// Inputs.
    pub cols: usize,
    /// `[rows, groups, bytes]`. Q8: 32 signed bytes, -127 to 127. Q4: 16 bytes, byte `j` with column `j` in its low and
    /// column `j + 16` in its high half, each plus 8.
    pub quants: &'a [u8],
    /// `[rows, blocks, bytes]`: a little-endian `bf16`; in Q4 then 8 signed bytes, -15 to 15, the factors of the block's groups
    /// (0 where it has fewer).
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

/// How a quantised format lies in a file.
trait StoredLayout: IntegerLayout {
    /// Bytes of a group's quants.
    const GROUP_BYTES: usize;
    /// Bytes of a block's scales.
    const SCALE_BYTES: usize;
    /// The quants of a group, by column.
    fn decode(bytes: &[u8]) -> [i8; GROUP];
    /// The inverse of `decode`.
    fn encode(quants: [i8; GROUP], out: &mut Vec<u8>);
    /// Sets the scale of a row in a block and the factors in `bytes`; a factor out of range is refused.
    fn set_scales(scales: &mut Self::Scales, lane: usize, bytes: &[u8]) -> std::result::Result<(), i8>;
    /// Writes the scale of a row in a block and its factors.
    fn scale_bytes(tile: &Tile<'_, Self>, lane: usize, block: usize, out: &mut Vec<u8>);
    /// Writes a column of one row to a group whose lines are zeros.
    fn set_quant(lines: &mut [Line], lane: usize, column: usize, quant: i8);
}

impl StoredLayout for Q8 {
    const GROUP_BYTES: usize = GROUP;
    const SCALE_BYTES: usize = 2;

    fn decode(bytes: &[u8]) -> [i8; GROUP] {
        std::array::from_fn(|column| bytes[column] as i8)
    }

    fn encode(quants: [i8; GROUP], out: &mut Vec<u8>) {
        out.extend(quants.map(|quant| quant as u8));
    }

    fn set_scales(scales: &mut [u16; LANES], lane: usize, bytes: &[u8]) -> std::result::Result<(), i8> {
        scales[lane] = u16::from_le_bytes([bytes[0], bytes[1]]);
        Ok(())
    }

    fn scale_bytes(tile: &Tile<'_, Self>, lane: usize, block: usize, out: &mut Vec<u8>) {
        out.extend(tile.scales[block][lane].to_le_bytes());
    }

    fn set_quant(lines: &mut [Line], lane: usize, column: usize, quant: i8) {
        lines[column / 4][4 * lane + column % 4] = quant as u8 ^ 0x80;
    }
}

impl StoredLayout for Q4 {
    const GROUP_BYTES: usize = GROUP / 2;
    const SCALE_BYTES: usize = 2 + Self::BLOCK / GROUP;

    fn decode(bytes: &[u8]) -> [i8; GROUP] {
        let half = GROUP / 2;
        let nibble =
            |column: usize| if column < half { bytes[column] & 15 } else { bytes[column - half] >> 4 };
        std::array::from_fn(|column| nibble(column) as i8 - 8)
    }

    fn encode(quants: [i8; GROUP], out: &mut Vec<u8>) {
        let nibble = |column: usize| (quants[column] + 8) as u8;
        out.extend((0..GROUP / 2).map(|column| nibble(column) | nibble(column + GROUP / 2) << 4));
    }

    fn set_scales(scales: &mut Self::Scales, lane: usize, bytes: &[u8]) -> std::result::Result<(), i8> {
        scales.steps[lane] = u16::from_le_bytes([bytes[0], bytes[1]]);
        for (group, &factor) in bytes[2..].iter().enumerate() {
            let factor = factor as i8;
            if factor.unsigned_abs() > MAX_SCALE.unsigned_abs() {
                return Err(factor);
            }
            scales.set_factor(lane, group, factor);
        }
        Ok(())
    }

    fn scale_bytes(tile: &Tile<'_, Self>, lane: usize, block: usize, out: &mut Vec<u8>) {
        let scales = &tile.scales[block];
        out.extend(scales.steps[lane].to_le_bytes());
        out.extend((0..Self::BLOCK / GROUP).map(|group| scales.factor(lane, group) as u8));
    }

    fn set_quant(lines: &mut [Line], lane: usize, column: usize, quant: i8) {
        let (half, column) = (column / (GROUP / 2), column % (GROUP / 2));
        lines[column / 4][4 * lane + column % 4] |= ((quant + 8) as u8) << (4 * half);
    }
}

impl WeightFormat {
    /// Bytes of a row of `cols` columns in a file: of its quants and of its scales; `None` for the float formats.
    pub fn stored_row_bytes(self, cols: usize) -> Option<[usize; 2]> {
        fn row_bytes<F: StoredLayout>(cols: usize) -> [usize; 2] {
            [cols.div_ceil(GROUP) * F::GROUP_BYTES, cols.div_ceil(F::BLOCK) * F::SCALE_BYTES]
        }
        match self {
            WeightFormat::Q8 => Some(row_bytes::<Q8>(cols)),
            WeightFormat::Q4 => Some(row_bytes::<Q4>(cols)),
            WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 => None,
        }
    }
}

impl PackedMatrix {
    /// Packs a weight that was quantised before; the values are taken over bit by bit.
    ///
    /// # Errors
    /// - [`Error::SourceLength`] when `quants` or `scales` have not as many bytes as the shape asks for
    /// - [`Error::NotRepresentable`] names the first scale that is not finite, factor beyond 15, or quant of -128
    /// - [`Error::ShapeOverflow`], [`Error::OutOfMemory`] when there is no room
    ///
    /// # Panics
    /// When the format is a float format.
    pub fn from_stored(stored: StoredMatrix<'_>) -> Result<Self> {
        let StoredMatrix { format, rows, cols, quants, scales } = stored;
        let overflow = || Error::ShapeOverflow { shape: vec![rows, cols] };
        let tile_bytes = format.tile_bytes(cols).ok_or_else(overflow)?;
        let row_bytes = format.stored_row_bytes(cols).expect("only Q8 and Q4 are stored in blocks");
        for (row_bytes, got) in row_bytes.into_iter().zip([quants.len(), scales.len()]) {
            let expected = rows.checked_mul(row_bytes).ok_or_else(overflow)?;
            if expected != got {
                return Err(Error::SourceLength { rows, cols, expected, got });
            }
        }
        let bytes = tile_bytes.checked_mul(rows.div_ceil(LANES)).ok_or_else(overflow)?;
        let mut buffer = Buffer::zeroed(bytes)?;
        let first_bad: Mutex<Option<Unfit>> = Mutex::new(None);
        for_each_chunk(Pool::global(), buffer.bytes_mut(), tile_bytes, |tile, out| {
            let read = match format {
                WeightFormat::Q8 => stored.read_tile::<Q8>(tile * LANES, out),
                _ => stored.read_tile::<Q4>(tile * LANES, out),
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
        match self.format {
            WeightFormat::Q8 => Some(self.store::<Q8>()),
            WeightFormat::Q4 => Some(self.store::<Q4>()),
            WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 => None,
        }
    }

    fn store<F: StoredLayout>(&self) -> StoredBytes {
        let mut stored = StoredBytes { quants: Vec::new(), scales: Vec::new() };
        for row in 0..self.rows {
            let (tile, lane) = (self.tile::<F>(row / LANES), row % LANES);
            for block in 0..tile.scales.len() {
                F::scale_bytes(&tile, lane, block, &mut stored.scales);
            }
            for group in 0..tile.groups() {
                let quants = std::array::from_fn(|column| F::quant(&tile, lane, group, column));
                F::encode(quants, &mut stored.quants);
            }
        }
        stored
    }
}

impl StoredMatrix<'_> {
    /// Lays out 16 rows for the kernels.
    fn read_tile<F: StoredLayout>(&self, first_row: usize, out: &mut [u8]) -> std::result::Result<(), Unfit> {
        let (tile_scales, tile_lines) = tile_mut::<F>(out, self.cols);
        let (groups, blocks) = (self.cols.div_ceil(GROUP), self.cols.div_ceil(F::BLOCK));
        for lane in 0..LANES {
            let row = first_row + lane;
            for (block, scales) in tile_scales.iter_mut().enumerate() {
                let unfit = |value: f32| Unfit { row, col: block * F::BLOCK, value };
                if row >= self.rows {
                    break;
                }
                let bytes = &self.scales[(row * blocks + block) * F::SCALE_BYTES..][..F::SCALE_BYTES];
                let scale = bf16::from_le_bytes([bytes[0], bytes[1]]);
                if !scale.is_finite() {
                    return Err(unfit(scale.to_f32()));
                }
                F::set_scales(scales, lane, bytes).map_err(|factor| unfit(f32::from(factor)))?;
            }
            for (group, lines) in tile_lines.chunks_exact_mut(F::GROUP_LINES).enumerate() {
                let quants = if row < self.rows {
                    F::decode(&self.quants[(row * groups + group) * F::GROUP_BYTES..][..F::GROUP_BYTES])
                } else {
                    [0; GROUP]
                };
                let used = GROUP.min(self.cols - group * GROUP);
                for (column, quant) in quants.into_iter().enumerate() {
                    if quant == i8::MIN {
                        return Err(Unfit { row, col: group * GROUP + column, value: quant.into() });
                    }
                    F::set_quant(lines, lane, column, if column < used { quant } else { 0 });
                }
            }
        }
        Ok(())
    }
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
        assert_eq!((quants.len(), scales.len()), (32, 10));
        assert_eq!((quants[0] & 15, quants[1], quants[16] & 15), (0, 0x88, 0), "{quants:?}");
        assert_eq!(scales[2..], [15, 15, 0, 0, 0, 0, 0, 0]);
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
        check(|bytes| bytes.scales[4..6].copy_from_slice(&bf16::NAN.to_le_bytes()), "row 2, column 0 is NaN");
        check(|bytes| bytes.quants[64 + 5] = 0x80, "row 1, column 5 is -128");
    }

    #[test]
    fn float_formats_are_not_stored_in_blocks() {
        assert_eq!(packed(WeightFormat::F16, 2, 2).to_stored(), None);
    }
}
