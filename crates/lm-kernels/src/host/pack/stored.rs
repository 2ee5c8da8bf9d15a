//! File layout of quantised weights: row-major, independent of the kernels' layout.

use half::bf16;

use super::super::lanes::{Kernel, LANES, Lanes, Line};
use super::integer::tile_mut;
use super::packing::{Packing, Unrepresentable};
use super::q4::MAX_SCALE;
use super::source::lines;
use super::{GROUP, IntegerLayout, PackedMatrix, Q4, Q8, Tile, WeightFormat};
use crate::error::Result;

/// A quantised weight `[rows, cols]` in the file layout, borrowed.
///
/// Rows are contiguous, each split into groups of 32 columns and blocks of 64 (Q8) or 256 (Q4); the last
/// group is zero-padded. A weight is its quant times its block's scale, and in Q4 also times its group's
/// integer scale.
#[derive(Clone, Copy, Debug)]
pub struct StoredMatrix<'a> {
    /// Q8 or Q4.
    pub format: WeightFormat,
    /// Output features.
    pub rows: usize,
    /// Input features.
    pub cols: usize,
    /// `[rows, groups, bytes]`. Q8: 32 signed bytes, -127 to 127. Q4: 16 bytes, byte `j` with column `j` in
    /// its low and column `j + 16` in its high nibble, each with zero point 8.
    pub quants: &'a [u8],
    /// `[rows, blocks, bytes]`: a little-endian `bf16`; in Q4 then 8 signed bytes, -15 to 15, the integer
    /// scales of the block's groups (0 for missing groups).
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

/// File layout of a quantised format.
///
/// The quants of a row are 4-byte words, and so are those of a row in a line of a tile: word `i` of a row is
/// its part of the tile's line `i`, except for some flipped bits.
trait StoredLayout: IntegerLayout {
    /// Bytes of scales per block.
    const SCALE_BYTES: usize;
    /// Bits that differ between a word of a tile and the word of the file.
    const FLIPPED: u32;
    /// Word of a tile whose quants are zero.
    const ZEROS: u32;

    /// Returns true if the words of a file have values outside the format's range.
    fn is_bad(words: &[u32; LANES]) -> bool;
    /// Sets the quants of a column of a group in a tile to zero.
    fn clear(lines: &mut [Line], column: usize);
    /// Sets the scale and integer scales of a row in a block from `bytes`; returns an integer scale that is
    /// out of range as error.
    fn set_scales(scales: &mut Self::Scales, lane: usize, bytes: &[u8]) -> std::result::Result<(), i8>;
    /// Appends the scale and integer scales of a row in a block.
    fn scale_bytes(tile: &Tile<'_, Self>, lane: usize, block: usize, out: &mut Vec<u8>);
}

impl StoredLayout for Q8 {
    const SCALE_BYTES: usize = 2;
    const FLIPPED: u32 = 0x8080_8080;
    const ZEROS: u32 = 0x8080_8080;

    #[inline(always)]
    fn is_bad(words: &[u32; LANES]) -> bool {
        // A byte is zero if adding 0x7f to its low seven bits leaves the highest bit clear, and it was clear
        // before.
        let mut bad = 0;
        for word in words {
            let word = word ^ Self::FLIPPED;
            bad |= !(((word & 0x7f7f_7f7f) + 0x7f7f_7f7f) | word) & 0x8080_8080;
        }
        bad != 0
    }

    fn clear(lines: &mut [Line], column: usize) {
        for lane in 0..LANES {
            lines[column / 4][4 * lane + column % 4] = 0x80;
        }
    }

    #[inline(always)]
    fn set_scales(scales: &mut [u16; LANES], lane: usize, bytes: &[u8]) -> std::result::Result<(), i8> {
        scales[lane] = u16::from_le_bytes([bytes[0], bytes[1]]);
        Ok(())
    }

    fn scale_bytes(tile: &Tile<'_, Self>, lane: usize, block: usize, out: &mut Vec<u8>) {
        out.extend(tile.scales[block][lane].to_le_bytes());
    }
}

impl StoredLayout for Q4 {
    const SCALE_BYTES: usize = 2 + Self::BLOCK / GROUP;
    const FLIPPED: u32 = 0;
    const ZEROS: u32 = 0x8888_8888;

    #[inline(always)]
    fn is_bad(_: &[u32; LANES]) -> bool {
        false
    }

    fn clear(lines: &mut [Line], column: usize) {
        let (half, column) = (column / (GROUP / 2), column % (GROUP / 2));
        for lane in 0..LANES {
            let byte = &mut lines[column / 4][4 * lane + column % 4];
            *byte = *byte & !(15 << (4 * half)) | 8 << (4 * half);
        }
    }

    #[inline(always)]
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
}

impl WeightFormat {
    /// Bytes of a row of `cols` columns in a file: of its quants and of its scales; `None` for formats other
    /// than Q8 and Q4.
    pub fn stored_row_bytes(self, cols: usize) -> Option<[usize; 2]> {
        fn row_bytes<F: StoredLayout>(cols: usize) -> [usize; 2] {
            [
                cols.div_ceil(GROUP) * F::GROUP_LINES * size_of::<u32>(),
                cols.div_ceil(F::BLOCK) * F::SCALE_BYTES,
            ]
        }
        match self {
            WeightFormat::Q8 => Some(row_bytes::<Q8>(cols)),
            WeightFormat::Q4 => Some(row_bytes::<Q4>(cols)),
            WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 | WeightFormat::Ggml(_) => None,
        }
    }
}

impl PackedMatrix {
    /// Packs an already quantised weight; values do not change.
    ///
    /// # Errors
    /// - [`Error::SourceLength`](crate::Error::SourceLength) when the number of bytes in `quants` or `scales`
    ///   does not fit the shape
    /// - [`Error::NotRepresentable`](crate::Error::NotRepresentable) for the first scale that is not finite,
    ///   factor beyond 15, or quant of -128
    /// - [`Error::ShapeOverflow`](crate::Error::ShapeOverflow),
    ///   [`Error::OutOfMemory`](crate::Error::OutOfMemory) when there is not enough memory
    ///
    /// # Panics
    /// When the format is a float format.
    pub fn from_stored(stored: StoredMatrix<'_>) -> Result<Self> {
        let StoredMatrix { format, rows, cols, quants, scales } = stored;
        let mut packing = Packing::without_arena(format, rows, cols)?;
        packing.push_stored(rows, quants, scales)?;
        Ok(packing.finish())
    }

    /// Converts the weight to the file layout; `None` for formats other than Q8 and Q4.
    pub fn to_stored(&self) -> Option<StoredBytes> {
        match self.format {
            WeightFormat::Q8 => Some(self.store::<Q8>()),
            WeightFormat::Q4 => Some(self.store::<Q4>()),
            WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 | WeightFormat::Ggml(_) => None,
        }
    }

    fn store<F: StoredLayout>(&self) -> StoredBytes {
        let mut stored = StoredBytes { quants: Vec::new(), scales: Vec::new() };
        for row in 0..self.rows {
            let (tile, lane) = (self.tile::<F>(row / LANES), row % LANES);
            for block in 0..tile.scales.len() {
                F::scale_bytes(&tile, lane, block, &mut stored.scales);
            }
            for line in tile.lines {
                let word = u32::from_le_bytes(line.as_chunks().0[lane]) ^ F::FLIPPED;
                stored.quants.extend(word.to_le_bytes());
            }
        }
        stored
    }
}

/// Packs 16 rows from the file layout.
pub(super) struct ReadTile<'a> {
    pub format: WeightFormat,
    pub quants: &'a [u8],
    pub scales: &'a [u8],
    pub rows: usize,
    pub cols: usize,
    pub first_row: usize,
    pub out: &'a mut [u8],
}

impl Kernel for ReadTile<'_> {
    type Output = std::result::Result<(), Unrepresentable>;
    const ONLY_FLOATS: bool = true;

    #[inline(always)]
    fn run<V: Lanes>(self) -> Self::Output {
        match self.format {
            WeightFormat::Q8 => self.read::<V, Q8>(),
            _ => self.read::<V, Q4>(),
        }
    }
}

impl ReadTile<'_> {
    #[inline(always)]
    fn read<V: Lanes, F: StoredLayout>(self) -> std::result::Result<(), Unrepresentable> {
        let (scales, lines) = tile_mut::<F>(self.out, self.cols);
        let lanes = LANES.min(self.rows - self.first_row);
        let blocks = scales.len();
        for lane in 0..lanes {
            let row = self.first_row + lane;
            let stored = &self.scales[row * blocks * F::SCALE_BYTES..][..blocks * F::SCALE_BYTES];
            for (block, (scales, bytes)) in
                scales.iter_mut().zip(stored.chunks_exact(F::SCALE_BYTES)).enumerate()
            {
                let unrepresentable = |value: f32| Unrepresentable { row, col: block * F::BLOCK, value };
                let scale = bf16::from_le_bytes([bytes[0], bytes[1]]);
                if !scale.is_finite() {
                    return Err(unrepresentable(scale.to_f32()));
                }
                F::set_scales(scales, lane, bytes).map_err(|factor| unrepresentable(f32::from(factor)))?;
            }
        }
        let row_bytes = lines.len() * size_of::<u32>();
        let rows = &self.quants[self.first_row * row_bytes..][..lanes * row_bytes];
        for (first, lines) in lines.chunks_mut(LANES).enumerate() {
            let first = first * LANES;
            let words = words_of::<V>(rows, row_bytes, first * size_of::<u32>(), F::ZEROS ^ F::FLIPPED);
            for (index, (line, words)) in lines.iter_mut().zip(&words).enumerate() {
                if F::is_bad(words) {
                    return Err(self::unrepresentable(
                        words,
                        self.first_row,
                        (first + index) * size_of::<u32>(),
                    ));
                }
                for (out, word) in line.as_chunks_mut().0.iter_mut().zip(words) {
                    *out = (word ^ F::FLIPPED).to_le_bytes();
                }
            }
        }
        let used = self.cols % GROUP;
        if used > 0 {
            let last = lines.len() - F::GROUP_LINES;
            (used..GROUP).for_each(|column| F::clear(&mut lines[last..], column));
        }
        Ok(())
    }
}

/// Up to 16 words of each row from byte `start` on, transposed; `missing` for missing words and rows.
#[inline(always)]
fn words_of<V: Lanes>(rows: &[u8], row_bytes: usize, start: usize, missing: u32) -> [[u32; LANES]; LANES] {
    if rows.len() == LANES * row_bytes && start + size_of::<Line>() <= row_bytes {
        return V::transpose(lines(rows, start, row_bytes));
    }
    let mut words = [[missing; LANES]; LANES];
    for (lane, row) in rows.chunks_exact(row_bytes).enumerate() {
        for (words, word) in words.iter_mut().zip(row[start..].as_chunks().0) {
            words[lane] = u32::from_le_bytes(*word);
        }
    }
    words
}

/// Locates the first quant of -128 in words that have one.
#[cold]
fn unrepresentable(words: &[u32; LANES], first_row: usize, first_col: usize) -> Unrepresentable {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    let place = bytes.map(|byte| byte as i8).position(|quant| quant == i8::MIN).unwrap_or(0);
    Unrepresentable { row: first_row + place / 4, col: first_col + place % 4, value: i8::MIN.into() }
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
        fn stored_weight_round_trips(q4: bool, rows in 1..40_usize, cols in 1..100_usize) {
            let format = if q4 { WeightFormat::Q4 } else { WeightFormat::Q8 };
            let before = packed(format, rows, cols);
            let bytes = before.to_stored().expect("a quantised format");
            let after = PackedMatrix::from_stored(stored(format, rows, cols, &bytes)).expect("just written");
            prop_assert_eq!(before.buffer.bytes(), after.buffer.bytes());
        }
    }

    #[test]
    fn layout_matches_the_documentation() {
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
    fn invalid_bytes_are_rejected_with_their_place() {
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
