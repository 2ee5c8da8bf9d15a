//! Weights in the one form that the CPU path reads.

mod buffer;
mod integer;
mod q4;
mod q8;
mod quantize;
mod source;
mod stored;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use half::bf16;

use super::cpu::{Isa, Kernel};
use super::lanes::{F32x16, LANES, Lanes, bf16_to_f32, f16_to_f32, f32_to_f16};
use super::pool::Pool;
use super::split::for_each_chunk;
use crate::{Error, Result};

pub(super) use buffer::Buffer;
pub(super) use integer::{GROUP, IntegerLayout, Tile};
use integer::{tile_bytes, tile_mut};
pub(super) use q4::{Q4, Q4Scales};
pub(super) use q8::Q8;
use quantize::Quantize;
#[cfg(test)]
pub(super) use quantize::round;
pub use source::{FloatDtype, Source};
pub use stored::{StoredBytes, StoredMatrix};

/// How weights are kept in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WeightFormat {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// The upper half of a single.
    Bf16,
    /// 8-bit integers with a `bf16` scale for each 64 columns of a row: 8.25 bits a weight.
    Q8,
    /// 4-bit integers with an integer scale for each 32 columns of a row and a `bf16` one for each 256: 4.22 bits a weight.
    Q4,
}

impl WeightFormat {
    /// Bytes of the packed columns of one tile of rows.
    fn tile_bytes(self, cols: usize) -> Option<usize> {
        match self {
            WeightFormat::F32 => cols.checked_mul(size_of::<[f32; LANES]>()),
            WeightFormat::F16 | WeightFormat::Bf16 => cols.checked_mul(size_of::<[u16; LANES]>()),
            WeightFormat::Q8 => tile_bytes::<Q8>(cols),
            WeightFormat::Q4 => tile_bytes::<Q4>(cols),
        }
    }
}

impl fmt::Display for WeightFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            WeightFormat::F32 => "f32",
            WeightFormat::F16 => "f16",
            WeightFormat::Bf16 => "bf16",
            WeightFormat::Q8 => "q8",
            WeightFormat::Q4 => "q4",
        })
    }
}

impl FromStr for WeightFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "f32" => Ok(WeightFormat::F32),
            "f16" => Ok(WeightFormat::F16),
            "bf16" => Ok(WeightFormat::Bf16),
            "q8" => Ok(WeightFormat::Q8),
            "q4" => Ok(WeightFormat::Q4),
            _ => Err(Error::UnknownName {
                what: "weight format",
                name: name.to_owned(),
                known: "f32, f16, bf16, q8, q4",
            }),
        }
    }
}

/// A weight of a linear layer, `[rows, cols]` = `[out, in]`, packed for the kernels.
///
/// It owns one buffer that begins at a cache line; nothing of the source is kept. The layout is private: tiles of 16 rows,
/// in each the columns one after another with the 16 rows side by side. Rows and columns may be any number; what is missing
/// in the last tile or block is zero.
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
    buffer: Buffer,
}

/// A column of halves, as bits.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct F16Unit(pub [u16; LANES]);

/// A column of bfloat16, as bits.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Bf16Unit(pub [u16; LANES]);

// SAFETY: an array of integers: any bytes will do.
unsafe impl bytemuck::Zeroable for F16Unit {}
// SAFETY: as above, without padding.
unsafe impl bytemuck::Pod for F16Unit {}
// SAFETY: an array of integers: any bytes will do.
unsafe impl bytemuck::Zeroable for Bf16Unit {}
// SAFETY: as above, without padding.
unsafe impl bytemuck::Pod for Bf16Unit {}

impl PackedMatrix {
    /// Packs the row-major elements of `source`, on the threads of the global pool.
    ///
    /// Float formats take the nearest value; 8 bit takes the largest magnitude of each block to 127; 4 bit searches the scale
    /// with the least squared error. The result depends on the values alone.
    ///
    /// # Errors
    /// - [`Error::SourceLength`] when `source` has not `rows * cols` elements
    /// - [`Error::NotRepresentable`] names a value that is too large for the format or, in Q8 and Q4, not finite
    /// - [`Error::ShapeOverflow`], [`Error::OutOfMemory`] when there is no room
    pub fn pack(format: WeightFormat, rows: usize, cols: usize, source: Source<'_>) -> Result<Self> {
        let overflow = || Error::ShapeOverflow { shape: vec![rows, cols] };
        let expected = rows.checked_mul(cols).ok_or_else(overflow)?;
        if source.len() != expected {
            return Err(Error::SourceLength { rows, cols, expected, got: source.len() });
        }
        let tile_bytes = format.tile_bytes(cols).ok_or_else(overflow)?;
        let bytes = tile_bytes.checked_mul(rows.div_ceil(LANES)).ok_or_else(overflow)?;
        let mut buffer = Buffer::zeroed(bytes)?;
        let first_bad: Mutex<Option<Unfit>> = Mutex::new(None);
        for_each_chunk(Pool::global(), buffer.bytes_mut(), tile_bytes, |tile, out| {
            let kernel = PackTile { format, source, rows, cols, first_row: tile * LANES, out };
            if let Err(bad) = Isa::current().run(kernel) {
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

    /// How many outputs a linear layer with this weight has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many inputs a linear layer with this weight has.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// What it was packed to.
    pub fn format(&self) -> WeightFormat {
        self.format
    }

    /// Bytes of the buffer, with what fills up the last tile and block.
    pub fn bytes(&self) -> usize {
        self.buffer.bytes().len()
    }

    /// Writes one row as floats to `out`: the values that [`linear`](super::linear) multiplies with.
    ///
    /// # Panics
    /// When there is no such row, or `out` has not `cols` elements.
    pub fn dequantize_row(&self, row: usize, out: &mut [f32]) {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        assert_eq!(out.len(), self.cols, "a row has {} columns", self.cols);
        let (tile, lane) = (row / LANES, row % LANES);
        match self.format {
            WeightFormat::Q8 => self.tile::<Q8>(tile).read_row(lane, out),
            WeightFormat::Q4 => self.tile::<Q4>(tile).read_row(lane, out),
            WeightFormat::F32 => fill(out, self.columns(tile), |unit: &[f32; LANES]| unit[lane]),
            WeightFormat::F16 => fill(out, self.columns(tile), |unit: &F16Unit| f16_to_f32(unit.0[lane])),
            WeightFormat::Bf16 => fill(out, self.columns(tile), |unit: &Bf16Unit| bf16_to_f32(unit.0[lane])),
        }
    }

    /// The scale and the integers of 32 columns of a row, for devices that lay them out in their own way. What the row lacks is
    /// zero.
    ///
    /// # Panics
    /// When the format is none of Q8 and Q4, or there is no such block.
    #[cfg(feature = "burn")]
    pub(crate) fn block(&self, row: usize, block: usize) -> (f32, [i8; GROUP]) {
        let (tile, lane) = (row / LANES, row % LANES);
        match self.format {
            WeightFormat::Q8 => self.tile::<Q8>(tile).group(lane, block),
            WeightFormat::Q4 => self.tile::<Q4>(tile).group(lane, block),
            WeightFormat::F32 | WeightFormat::F16 | WeightFormat::Bf16 => {
                panic!("{} has no blocks", self.format)
            }
        }
    }

    /// Sixteen rows of a matrix in an integer format, which must be `F`.
    #[inline(always)]
    pub(super) fn tile<F: IntegerLayout>(&self, index: usize) -> Tile<'_, F> {
        Tile::of(self.buffer.bytes(), index, self.cols)
    }

    /// The columns of sixteen rows of a matrix in a float format, whose unit must be `U`.
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

fn fill<U>(out: &mut [f32], units: &[U], read: impl Fn(&U) -> f32) {
    for (out, unit) in out.iter_mut().zip(units) {
        *out = read(unit);
    }
}

impl<F: IntegerLayout> Tile<'_, F> {
    /// Scale and integers of a group of a row.
    fn group(&self, lane: usize, group: usize) -> (f32, [i8; GROUP]) {
        let scales = F::steps(&self.scales[group * GROUP / F::BLOCK]);
        let scale = bf16_to_f32(scales[lane]) * f32::from(F::group_scale(self, lane, group));
        (scale, std::array::from_fn(|column| F::quant(self, lane, group, column)))
    }

    /// The row as floats.
    fn read_row(&self, lane: usize, out: &mut [f32]) {
        for (group, out) in out.chunks_mut(GROUP).enumerate() {
            let (scale, quants) = self.group(lane, group);
            for (out, quant) in out.iter_mut().zip(quants) {
                *out = scale * f32::from(quant);
            }
        }
    }
}

/// A value that the format cannot hold.
struct Unfit {
    row: usize,
    col: usize,
    value: f32,
}

/// Packs 16 rows.
struct PackTile<'a> {
    format: WeightFormat,
    source: Source<'a>,
    rows: usize,
    cols: usize,
    first_row: usize,
    out: &'a mut [u8],
}

impl Kernel for PackTile<'_> {
    type Output = std::result::Result<(), Unfit>;

    #[inline(always)]
    fn run<V: Lanes>(self) -> Self::Output {
        match self.format {
            WeightFormat::F32 => self.floats(|x, out: &mut [f32; LANES]| *out = x.0, |_| true),
            WeightFormat::F16 => {
                self.floats(|x, out: &mut [u16; LANES]| f32_to_f16(&x.0, out), |x| x.abs() < 65_520.0)
            }
            WeightFormat::Bf16 => self.floats(
                |x, out: &mut [u16; LANES]| *out = x.0.map(|x| bf16::from_f32(x).to_bits()),
                |x| bf16::from_f32(x).is_finite(),
            ),
            WeightFormat::Q8 => self.blocks::<Q8>(),
            WeightFormat::Q4 => self.blocks::<Q4>(),
        }
    }
}

impl PackTile<'_> {
    /// Packs columns; what is not finite stays so, but nothing becomes so.
    #[inline(always)]
    fn floats<U: bytemuck::Pod>(
        self,
        convert: impl Fn(&F32x16, &mut U),
        fits: impl Fn(f32) -> bool,
    ) -> std::result::Result<(), Unfit> {
        let units: &mut [U] = bytemuck::cast_slice_mut(self.out);
        for (index, units) in units.chunks_mut(GROUP).enumerate() {
            let columns = gather(self.source, self.rows, self.cols, self.first_row, index * GROUP);
            find_unfit(&columns, self.first_row, index * GROUP, |x| !x.is_finite() || fits(x))?;
            for (column, unit) in columns.iter().zip(units) {
                convert(column, unit);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn blocks<F: Quantize>(self) -> std::result::Result<(), Unfit> {
        let groups = F::BLOCK / GROUP;
        let (scales, lines) = tile_mut::<F>(self.out, self.cols);
        let lines = lines.chunks_mut(groups * F::GROUP_LINES);
        let mut columns = vec![F32x16::ZERO; F::BLOCK];
        for (index, (scales, lines)) in scales.iter_mut().zip(lines).enumerate() {
            let first = index * F::BLOCK;
            let columns = &mut columns[..lines.len() / F::GROUP_LINES * GROUP];
            for (group, columns) in columns.as_chunks_mut::<GROUP>().0.iter_mut().enumerate() {
                *columns = gather(self.source, self.rows, self.cols, self.first_row, first + group * GROUP);
            }
            find_unfit(columns, self.first_row, first, f32::is_finite)?;
            F::quantize(columns, scales, lines);
            let infinite = F::steps(scales).map(|scale| scale & 0x7f80 == 0x7f80);
            if let Some(lane) = infinite.iter().position(|&infinite| infinite) {
                let largest = |x: &(usize, &F32x16), y: &(usize, &F32x16)| {
                    x.1.0[lane].abs().total_cmp(&y.1.0[lane].abs())
                };
                let (col, x) = columns.iter().enumerate().max_by(largest).unwrap_or((0, &F32x16::ZERO));
                return Err(Unfit { row: self.first_row + lane, col: first + col, value: x.0[lane] });
            }
        }
        Ok(())
    }
}

/// 32 columns of 16 rows, transposed; zeros outside the matrix.
#[inline(always)]
fn gather(
    source: Source<'_>,
    rows: usize,
    cols: usize,
    first_row: usize,
    first_col: usize,
) -> [F32x16; GROUP] {
    let mut out = [F32x16::ZERO; GROUP];
    let width = GROUP.min(cols - first_col);
    for lane in 0..LANES.min(rows - first_row) {
        let mut row = [0.0; GROUP];
        source.read((first_row + lane) * cols + first_col, &mut row[..width]);
        for (column, value) in out.iter_mut().zip(row) {
            column.0[lane] = value;
        }
    }
    out
}

/// The first value, row by row, that does not pass.
#[inline(always)]
fn find_unfit(
    columns: &[F32x16],
    first_row: usize,
    first_col: usize,
    fits: impl Fn(f32) -> bool,
) -> std::result::Result<(), Unfit> {
    for lane in 0..LANES {
        for (col, column) in columns.iter().enumerate() {
            if !fits(column.0[lane]) {
                return Err(Unfit { row: first_row + lane, col: first_col + col, value: column.0[lane] });
            }
        }
    }
    Ok(())
}
