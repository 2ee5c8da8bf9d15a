//! Weights packed for the CPU kernels.

mod buffer;
mod dtype;
mod encode;
mod ggml;
mod importance;
mod integer;
mod packing;
mod q4;
mod q8;
mod quantize;
mod scale_search;
mod source;
mod stored;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use super::lanes::{LANES, bf16_to_f32, f16_to_f32};
use crate::error::{Error, Result};

pub use buffer::Arena;
pub(super) use buffer::Buffer;
use buffer::SharedBuffer;
pub use dtype::FloatDtype;
pub use ggml::GgmlType;
pub(super) use ggml::{BlockFormat, EXPANDED_LINES, ForBlocks, RECORD, Record, RecordTile, Scales, code};
pub use importance::Importance;
use integer::tile_bytes;
pub(super) use integer::{GROUP, IntegerLayout, Tile};
pub use packing::Packing;
pub(super) use q4::{Q4, Q4Scales};
pub(super) use q8::Q8;
pub use source::Source;
pub use stored::{StoredBytes, StoredMatrix};

/// Storage format of weights.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WeightFormat {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// bfloat16, the upper half of a single.
    Bf16,
    /// 8-bit integers with a `bf16` scale per 64 columns of a row: 8.25 bits per weight.
    Q8,
    /// 4-bit integers with an integer scale per 32 columns of a row and a `bf16` scale per 256: 4.22 bits per
    /// weight.
    Q4,
    /// A block-quantised type of GGUF files, with unchanged values.
    Ggml(GgmlType),
}

impl WeightFormat {
    /// Name, which [`FromStr`] reads.
    pub fn name(self) -> &'static str {
        match self {
            WeightFormat::F32 => "f32",
            WeightFormat::F16 => "f16",
            WeightFormat::Bf16 => "bf16",
            WeightFormat::Q8 => "q8",
            WeightFormat::Q4 => "q4",
            WeightFormat::Ggml(ggml) => ggml.name(),
        }
    }

    /// Returns this format, or F16 if rows of `cols` columns are not a multiple of its blocks, as in
    /// llama.cpp's converter.
    ///
    /// ```
    /// use lm_kernels::{GgmlType, WeightFormat};
    /// let q8_0 = WeightFormat::Ggml(GgmlType::Q8_0);
    /// assert_eq!([q8_0.for_rows_of(64), q8_0.for_rows_of(48)], [q8_0, WeightFormat::F16]);
    /// ```
    #[must_use]
    pub fn for_rows_of(self, cols: usize) -> Self {
        match self {
            Self::Ggml(ggml) if !cols.is_multiple_of(ggml.block_len()) => Self::F16,
            format => format,
        }
    }

    /// Returns the bytes of a packed matrix, [`PackedMatrix::bytes`], without packing one; `None` on
    /// overflow.
    ///
    /// ```
    /// use lm_kernels::{PackedMatrix, Source, WeightFormat};
    ///
    /// let packed = PackedMatrix::pack(WeightFormat::Q8, 3, 40, Source::F32(&[1.0; 120]))?;
    /// assert_eq!(WeightFormat::Q8.matrix_bytes(3, 40), Some(packed.bytes()));
    /// # Ok::<(), lm_kernels::Error>(())
    /// ```
    pub fn matrix_bytes(self, rows: usize, cols: usize) -> Option<usize> {
        self.tile_bytes(cols)?.checked_mul(rows.div_ceil(LANES))
    }

    /// Bytes of a packed tile of 16 rows; `None` on overflow.
    fn tile_bytes(self, cols: usize) -> Option<usize> {
        match self {
            WeightFormat::F32 => cols.checked_mul(size_of::<[f32; LANES]>()),
            WeightFormat::F16 | WeightFormat::Bf16 => cols.checked_mul(size_of::<[u16; LANES]>()),
            WeightFormat::Q8 => tile_bytes::<Q8>(cols),
            WeightFormat::Q4 => tile_bytes::<Q4>(cols),
            WeightFormat::Ggml(ggml) => ggml.tile_bytes(cols),
        }
    }
}

impl fmt::Display for WeightFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for WeightFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let own = [Self::F32, Self::F16, Self::Bf16, Self::Q8, Self::Q4];
        let mut formats = own.into_iter().chain(GgmlType::ALL.iter().map(|&ggml| Self::Ggml(ggml)));
        formats.find(|format| format.name() == name).ok_or_else(|| Error::UnknownName {
            what: "weight format",
            name: name.to_owned(),
            known: "f32, f16, bf16, q8, q4 or a block type of ggml such as q4_k".to_owned(),
        })
    }
}

/// Weight of a linear layer, `[rows, cols]` = `[out, in]`, packed for the kernels.
///
/// It owns one contiguous, cache-line aligned buffer and keeps no reference to the source. The layout is
/// private: tiles of 16 rows, each column-major, with the 16 rows of a column adjacent. Any number of rows
/// and columns is allowed; the last tile and block are zero-padded.
///
/// # Examples
/// ```
/// use lm_kernels::{PackedMatrix, Source, WeightFormat};
/// let packed = PackedMatrix::pack(WeightFormat::F32, 2, 3, Source::F32(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))?;
/// let mut row = [0.0; 3];
/// packed.dequantize_row(1, &mut row);
/// assert_eq!(row, [4.0, 5.0, 6.0]);
/// # Ok::<(), lm_kernels::Error>(())
/// ```
#[derive(Clone)]
pub struct PackedMatrix {
    format: WeightFormat,
    rows: usize,
    cols: usize,
    buffer: SharedBuffer,
}

/// A column of 16 f16 values, as bits.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct F16Unit(pub [u16; LANES]);

/// A column of 16 bf16 values, as bits.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Bf16Unit(pub [u16; LANES]);

// SAFETY: an array of integers: any bytes are valid.
unsafe impl bytemuck::Zeroable for F16Unit {}
// SAFETY: as above, without padding.
unsafe impl bytemuck::Pod for F16Unit {}
// SAFETY: an array of integers: any bytes are valid.
unsafe impl bytemuck::Zeroable for Bf16Unit {}
// SAFETY: as above, without padding.
unsafe impl bytemuck::Pod for Bf16Unit {}

impl PackedMatrix {
    /// Packs the row-major elements of `source`, on the threads of the global pool.
    ///
    /// Float formats round to nearest; Q8 maps the largest magnitude of each block to 127; Q4 searches the
    /// scale with the least error, weighted towards large values. The result depends on the values alone.
    ///
    /// # Errors
    /// - [`Error::SourceLength`] when `source` does not have `rows * cols` elements
    /// - [`Error::NotRepresentable`] for a value that is too large for the format or, in integer formats, not
    ///   finite
    /// - [`Error::NotQuantizable`] when the format is only read from files: all ggml types except Q8_0 and
    ///   Q4_0
    /// - [`Error::ShapeOverflow`], [`Error::OutOfMemory`] when there is not enough memory
    pub fn pack(format: WeightFormat, rows: usize, cols: usize, source: Source<'_>) -> Result<Self> {
        let mut packing = Packing::without_arena(format, rows, cols)?;
        packing.push(rows, source)?;
        Ok(packing.finish())
    }

    /// Packs a weight from blocks in GGUF's layout: [`Packing::push_blocks`] of all rows.
    ///
    /// # Errors
    /// As [`Packing::new`] and [`Packing::push_blocks`].
    ///
    /// # Examples
    /// ```
    /// use lm_kernels::{GgmlType, PackedMatrix};
    /// // A half, 2.0, and 32 signed bytes.
    /// let block: Vec<u8> = [0x00, 0x40].into_iter().chain(0..32).collect();
    /// let packed = PackedMatrix::from_blocks(GgmlType::Q8_0, 1, 32, &block)?;
    /// let mut row = [0.0; 32];
    /// packed.dequantize_row(0, &mut row);
    /// assert_eq!(row[31], 62.0);
    /// # Ok::<(), lm_kernels::Error>(())
    /// ```
    pub fn from_blocks(format: GgmlType, rows: usize, cols: usize, blocks: &[u8]) -> Result<Self> {
        let mut packing = Packing::without_arena(WeightFormat::Ggml(format), rows, cols)?;
        packing.push_blocks(rows, blocks)?;
        Ok(packing.finish())
    }

    /// Number of rows: output features of the linear layer.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns: input features of the linear layer.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Storage format.
    pub fn format(&self) -> WeightFormat {
        self.format
    }

    /// Bytes of the buffer, including the padding of the last tile and block.
    pub fn bytes(&self) -> usize {
        self.buffer.bytes().len()
    }

    /// Returns a view of some of the rows, sharing the memory (reference-counted) without copying.
    ///
    /// # Panics
    /// When the range exceeds the rows, or does not start at a tile: a multiple of [`Packing::ROWS`].
    ///
    /// # Examples
    /// ```
    /// use lm_kernels::{PackedMatrix, Source, WeightFormat};
    /// let values: Vec<f32> = (0..40).map(|row| row as f32).collect();
    /// let all = PackedMatrix::pack(WeightFormat::F32, 40, 1, Source::F32(&values))?;
    /// let mut value = [0.0];
    /// all.row_range(16..20).dequantize_row(3, &mut value);
    /// assert_eq!(value, [19.0]);
    /// # Ok::<(), lm_kernels::Error>(())
    /// ```
    pub fn row_range(&self, rows: Range<usize>) -> PackedMatrix {
        assert!(rows.start <= rows.end && rows.end <= self.rows, "rows {rows:?} of {}", self.rows);
        assert!(rows.start.is_multiple_of(LANES), "row {} is not the first of a tile", rows.start);
        let tile_bytes = self.bytes() / self.rows.div_ceil(LANES).max(1);
        let tiles = rows.start / LANES..rows.end.div_ceil(LANES);
        let buffer = self.buffer.part(tiles.start * tile_bytes..tiles.end * tile_bytes);
        PackedMatrix { format: self.format, rows: rows.len(), cols: self.cols, buffer }
    }

    /// Dequantises one row to `out`: the values that [`linear`](super::linear) multiplies by.
    ///
    /// # Panics
    /// When the row is out of range, or `out` does not have `cols` elements.
    pub fn dequantize_row(&self, row: usize, out: &mut [f32]) {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        assert_eq!(out.len(), self.cols, "a row has {} columns", self.cols);
        let (tile, lane) = (row / LANES, row % LANES);
        match self.format {
            WeightFormat::Q8 => self.tile::<Q8>(tile).read_row(lane, out),
            WeightFormat::Q4 => self.tile::<Q4>(tile).read_row(lane, out),
            WeightFormat::Ggml(ggml) => ggml.run(ReadRow { matrix: self, tile, lane, out }),
            WeightFormat::F32 => fill(out, self.columns(tile), |unit: &[f32; LANES]| unit[lane]),
            WeightFormat::F16 => fill(out, self.columns(tile), |unit: &F16Unit| f16_to_f32(unit.0[lane])),
            WeightFormat::Bf16 => fill(out, self.columns(tile), |unit: &Bf16Unit| bf16_to_f32(unit.0[lane])),
        }
    }

    /// Scale and quants of 32 columns of a row, for devices with a layout of their own. Missing columns are
    /// zero.
    ///
    /// # Panics
    /// When the format is not one of Q8, Q4 and ggml's Q8_0 and Q4_0, or the block is out of range.
    #[cfg(feature = "burn")]
    pub(crate) fn block(&self, row: usize, block: usize) -> (f32, [i8; GROUP]) {
        let (tile, lane) = (row / LANES, row % LANES);
        match self.format {
            WeightFormat::Q8 => self.tile::<Q8>(tile).group(lane, block),
            WeightFormat::Q4 => self.tile::<Q4>(tile).group(lane, block),
            WeightFormat::Ggml(GgmlType::Q8_0) => self.records::<ggml::Q8_0>(tile).group(lane, block),
            WeightFormat::Ggml(GgmlType::Q4_0) => self.records::<ggml::Q4_0>(tile).group(lane, block),
            WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 | WeightFormat::Ggml(_) => {
                panic!("{} has no blocks of this kind", self.format)
            }
        }
    }

    /// Tile `index` of a matrix in the integer format `F`.
    #[inline(always)]
    pub(super) fn tile<F: IntegerLayout>(&self, index: usize) -> Tile<'_, F> {
        Tile::of(self.buffer.bytes(), index, self.cols)
    }

    /// Tile `index` of a matrix in the block type `F`.
    #[inline(always)]
    pub(super) fn records<F: BlockFormat>(&self, index: usize) -> RecordTile<'_, F> {
        RecordTile::of(self.buffer.bytes(), index, self.cols)
    }

    /// Columns of a tile of a matrix in a float format whose unit is `U`.
    #[inline(always)]
    pub(super) fn columns<U: bytemuck::Pod>(&self, tile: usize) -> &[U] {
        &bytemuck::cast_slice(self.buffer.bytes())[tile * self.cols..(tile + 1) * self.cols]
    }
}

impl fmt::Debug for PackedMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PackedMatrix({} [{}, {}])", self.format, self.rows, self.cols)
    }
}

/// Dequantises a row of a matrix in a block type.
struct ReadRow<'a> {
    matrix: &'a PackedMatrix,
    tile: usize,
    lane: usize,
    out: &'a mut [f32],
}

impl ForBlocks for ReadRow<'_> {
    type Output = ();

    fn run<F: BlockFormat>(self) {
        self.matrix.records::<F>(self.tile).read_row(self.lane, self.out);
    }
}

fn fill<U>(out: &mut [f32], units: &[U], read: impl Fn(&U) -> f32) {
    for (out, unit) in out.iter_mut().zip(units) {
        *out = read(unit);
    }
}

impl<F: IntegerLayout> Tile<'_, F> {
    /// Scale and quants of a group of a row.
    fn group(&self, lane: usize, group: usize) -> (f32, [i8; GROUP]) {
        let scales = F::steps(&self.scales[group * GROUP / F::BLOCK]);
        let scale = bf16_to_f32(scales[lane]) * f32::from(F::group_scale(self, lane, group));
        (scale, std::array::from_fn(|column| F::quant(self, lane, group, column)))
    }

    /// Dequantises a row.
    fn read_row(&self, lane: usize, out: &mut [f32]) {
        for (group, out) in out.chunks_mut(GROUP).enumerate() {
            let (scale, quants) = self.group(lane, group);
            for (out, quant) in out.iter_mut().zip(quants) {
                *out = scale * f32::from(quant);
            }
        }
    }
}
