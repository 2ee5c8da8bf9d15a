//! Incremental packing of rows.

use std::sync::{Mutex, PoisonError};

use half::bf16;

use super::super::isa::Isa;
use super::super::lanes::{F32x16, Kernel, LANES, Lanes, f32_to_f16};
use super::super::pool::Pool;
use super::super::prefetch_plan::PrefetchPlan;
use super::super::split::for_each_chunk;
use super::buffer::{Arena, Buffer};
use super::ggml::PackBlocks;
use super::importance::Importance;
use super::integer::{GROUP, tile_mut};
use super::quantize::Quantize;
use super::stored::ReadTile;
use super::{FloatDtype, GgmlType, PackedMatrix, Q4, Q8, Source, WeightFormat};
use crate::error::{Error, Result};

/// Builder of a [`PackedMatrix`].
///
/// Rows are pushed in order, some at a time, so that the memory they were read from can be released before
/// the next ones are read. The result does not depend on how the rows are split.
#[derive(Debug)]
pub struct Packing {
    format: WeightFormat,
    rows: usize,
    cols: usize,
    /// Number of rows packed.
    done: usize,
    tile_bytes: usize,
    buffer: Buffer,
    importance: Option<Importance>,
}

impl Packing {
    /// Rows pushed together must be a multiple of this, except for the last ones.
    pub const ROWS: usize = LANES;

    /// Starts a matrix `[rows, cols]` in memory of `arena`.
    ///
    /// # Errors
    /// - [`Error::PartialBlock`] when the format is a block type and `cols` is not a multiple of its blocks
    /// - [`Error::ShapeOverflow`], [`Error::OutOfMemory`] when there is not enough memory
    /// - those of [`Isa::requested`] and [`PrefetchPlan::requested`]
    pub fn new(arena: &Arena, format: WeightFormat, rows: usize, cols: usize) -> Result<Self> {
        Self::allocated_by(format, rows, cols, |bytes| arena.allocate(bytes))
    }

    /// Starts a matrix in a buffer of its own.
    pub(super) fn without_arena(format: WeightFormat, rows: usize, cols: usize) -> Result<Self> {
        Self::allocated_by(format, rows, cols, Buffer::zeroed)
    }

    fn allocated_by(
        format: WeightFormat,
        rows: usize,
        cols: usize,
        allocate: impl FnOnce(usize) -> Result<Buffer>,
    ) -> Result<Self> {
        Isa::requested()?;
        PrefetchPlan::requested()?;
        let overflow = || Error::ShapeOverflow { shape: vec![rows, cols] };
        if let WeightFormat::Ggml(ggml) = format
            && !cols.is_multiple_of(ggml.block_len())
        {
            return Err(Error::PartialBlock { cols, block: ggml.block_len(), format: format.name() });
        }
        rows.checked_mul(cols).ok_or_else(overflow)?;
        let tile_bytes = format.tile_bytes(cols).ok_or_else(overflow)?;
        let bytes = tile_bytes.checked_mul(rows.div_ceil(LANES)).ok_or_else(overflow)?;
        let (done, buffer) = (0, allocate(bytes)?);
        Ok(Self { format, rows, cols, done, tile_bytes, buffer, importance: None })
    }

    /// Weights the columns' squared errors by their importance in the scale search of Q4; other formats
    /// ignore the importance.
    ///
    /// # Panics
    /// When the importance belongs to a matrix of another shape.
    #[must_use]
    pub fn with_importance(self, importance: Importance) -> Self {
        assert!(importance.fits(self.rows, self.cols), "an importance of [{}, {}]", self.rows, self.cols);
        Self { importance: Some(importance), ..self }
    }

    /// Packs the next rows from row-major elements, on the threads of the global pool; values as in
    /// [`PackedMatrix::pack`].
    ///
    /// # Errors
    /// - [`Error::SourceLength`] when `source` does not have `rows * cols` elements
    /// - [`Error::NotRepresentable`] for the first value that is too large for the format or, in integer
    ///   formats, not finite
    /// - [`Error::NotQuantizable`] when the format is a block type of ggml other than Q8_0 and Q4_0
    ///
    /// # Panics
    /// When `rows` exceeds the rows left, or is not a multiple of [`Packing::ROWS`] and not the last.
    pub fn push(&mut self, rows: usize, source: Source<'_>) -> Result<()> {
        let (format, cols) = (self.format, self.cols);
        check_len(rows, cols, cols, source.len())?;
        if let WeightFormat::Ggml(ggml) = format {
            let blocks = ggml.quantize(cols, source).map_err(|error| error.after_rows(self.done))?;
            return self.push_blocks(rows, &blocks);
        }
        let (importance, done) = (self.importance.take(), self.done);
        let packed = self.tiles(rows, |first_row, out| {
            let importance = importance.as_ref().map(|importance| (importance, done + first_row));
            Isa::current().run(PackTile { format, source, rows, cols, first_row, importance, out })
        });
        self.importance = importance;
        packed
    }

    /// Packs the next rows of an already quantised matrix, without changing a value: `quants` and `scales` as
    /// in [`StoredMatrix`](super::StoredMatrix).
    ///
    /// # Errors
    /// - [`Error::SourceLength`] when the number of bytes in `quants` or `scales` does not fit the rows
    /// - [`Error::NotRepresentable`] for the first scale that is not finite, factor beyond 15, or quant of
    ///   -128
    ///
    /// # Panics
    /// As [`Packing::push`], and when the format is a float format.
    pub fn push_stored(&mut self, rows: usize, quants: &[u8], scales: &[u8]) -> Result<()> {
        let (format, cols) = (self.format, self.cols);
        let row_bytes = format.stored_row_bytes(cols).expect("only Q8 and Q4 are stored in blocks");
        for (row_bytes, got) in row_bytes.into_iter().zip([quants.len(), scales.len()]) {
            check_len(rows, cols, row_bytes, got)?;
        }
        self.tiles(rows, |first_row, out| {
            Isa::current().run(ReadTile { format, quants, scales, rows, cols, first_row, out })
        })
    }

    /// Packs the next rows from blocks in GGUF's layout, row-major; no value changes.
    ///
    /// # Errors
    /// - [`Error::SourceLength`] when the number of bytes does not fit the rows
    /// - [`Error::NotRepresentable`] for the first column of the first block with a scale that is not finite
    ///
    /// # Panics
    /// As [`Packing::push`], and when the format is not a block type.
    pub fn push_blocks(&mut self, rows: usize, blocks: &[u8]) -> Result<()> {
        let (format, cols) = (self.block_type(), self.cols);
        check_len(rows, cols, cols / format.block_len() * format.block_bytes(), blocks.len())?;
        self.tiles(rows, |first_row, out| PackBlocks { format, blocks, rows, cols, first_row, out }.pack())
    }

    fn block_type(&self) -> GgmlType {
        match self.format {
            WeightFormat::Ggml(ggml) => ggml,
            other => panic!("{other} is not a block type of ggml"),
        }
    }

    /// Finishes the matrix.
    ///
    /// # Panics
    /// When rows are missing.
    pub fn finish(self) -> PackedMatrix {
        assert_eq!(self.done, self.rows, "rows are missing");
        PackedMatrix { format: self.format, rows: self.rows, cols: self.cols, buffer: self.buffer.into() }
    }

    /// Fills the tiles of the next rows: `task` gets the first row of a tile, relative to the first of these,
    /// and its bytes.
    fn tiles(
        &mut self,
        rows: usize,
        task: impl Fn(usize, &mut [u8]) -> std::result::Result<(), Unrepresentable> + Sync,
    ) -> Result<()> {
        let left = self.rows - self.done;
        assert!(rows <= left, "{rows} rows, {left} are left");
        assert!(rows == left || rows.is_multiple_of(LANES), "{rows} rows and more to come");
        let first_bad: Mutex<Option<Unrepresentable>> = Mutex::new(None);
        let start = self.done / LANES * self.tile_bytes;
        let out = &mut self.buffer.bytes_mut()[start..][..rows.div_ceil(LANES) * self.tile_bytes];
        for_each_chunk(Pool::global(), out, self.tile_bytes, |tile, out| {
            // Zeroed here: a page that is read before it is written causes two page faults.
            out.fill(0);
            if let Err(bad) = task(tile * LANES, out) {
                let mut first = first_bad.lock().unwrap_or_else(PoisonError::into_inner);
                if first.as_ref().is_none_or(|first| (bad.row, bad.col) < (first.row, first.col)) {
                    *first = Some(bad);
                }
            }
        });
        if let Some(Unrepresentable { row, col, value }) =
            first_bad.into_inner().unwrap_or_else(PoisonError::into_inner)
        {
            return Err(Error::NotRepresentable {
                row: self.done + row,
                col,
                value,
                format: self.format.name(),
            });
        }
        self.done += rows;
        Ok(())
    }
}

fn check_len(rows: usize, cols: usize, row_len: usize, got: usize) -> Result<()> {
    let expected =
        rows.checked_mul(row_len).ok_or_else(|| Error::ShapeOverflow { shape: vec![rows, cols] })?;
    if got == expected { Ok(()) } else { Err(Error::SourceLength { rows, cols, expected, got }) }
}

/// A value that is not representable in the format.
pub(super) struct Unrepresentable {
    pub row: usize,
    pub col: usize,
    pub value: f32,
}

/// Packs 16 rows.
pub(super) struct PackTile<'a> {
    pub format: WeightFormat,
    pub source: Source<'a>,
    pub rows: usize,
    pub cols: usize,
    pub first_row: usize,
    /// Importance of the matrix's columns, and the number of the first row in the matrix.
    pub importance: Option<(&'a Importance, usize)>,
    pub out: &'a mut [u8],
}

impl Kernel for PackTile<'_> {
    type Output = std::result::Result<(), Unrepresentable>;
    const ONLY_FLOATS: bool = true;

    #[inline(always)]
    fn run<V: Lanes>(self) -> Self::Output {
        match self.format {
            WeightFormat::F32 => self.floats::<V, _>(|x, out: &mut [f32; LANES]| *out = x.0, |_| true),
            WeightFormat::F16 if self.is_whole(FloatDtype::F16) => self.copy::<V>(),
            WeightFormat::Bf16 if self.is_whole(FloatDtype::Bf16) => self.copy::<V>(),
            WeightFormat::F16 => {
                self.floats::<V, _>(|x, out: &mut [u16; LANES]| f32_to_f16(&x.0, out), |x| x.abs() < 65_520.0)
            }
            WeightFormat::Bf16 => self.floats::<V, _>(
                |x, out: &mut [u16; LANES]| *out = x.0.map(|x| bf16::from_f32(x).to_bits()),
                |x| bf16::from_f32(x).is_finite(),
            ),
            WeightFormat::Q8 => self.blocks::<V, Q8>(),
            WeightFormat::Q4 => self.blocks::<V, Q4>(),
            WeightFormat::Ggml(_) => unreachable!("`push` quantises and takes over the blocks"),
        }
    }
}

impl PackTile<'_> {
    /// Returns true if all 16 rows are present, in full groups, and stored in a file as `dtype`.
    fn is_whole(&self, dtype: FloatDtype) -> bool {
        matches!(self.source, Source::LeBytes { dtype: got, .. } if got == dtype)
            && self.first_row + LANES <= self.rows
            && self.cols.is_multiple_of(GROUP)
    }

    /// Copies columns that are stored in the format's own type.
    #[inline(always)]
    fn copy<V: Lanes>(self) -> std::result::Result<(), Unrepresentable> {
        let units: &mut [[u16; LANES]] = bytemuck::cast_slice_mut(self.out);
        for (index, units) in units.as_chunks_mut::<GROUP>().0.iter_mut().enumerate() {
            self.source.gather_bits::<V>(self.cols, self.first_row * self.cols + index * GROUP, units);
        }
        Ok(())
    }

    /// Converts columns to a float format; non-finite values are kept, but a finite value must stay finite.
    #[inline(always)]
    fn floats<V: Lanes, U: bytemuck::Pod>(
        self,
        convert: impl Fn(&F32x16, &mut U),
        fits: impl Fn(f32) -> bool,
    ) -> std::result::Result<(), Unrepresentable> {
        let units: &mut [U] = bytemuck::cast_slice_mut(self.out);
        for (index, units) in units.chunks_mut(GROUP).enumerate() {
            let mut columns = [F32x16::ZERO; GROUP];
            self.source.gather::<V>(self.rows, self.cols, self.first_row, index * GROUP, &mut columns);
            find_unrepresentable(&columns, self.first_row, index * GROUP, |x| !x.is_finite() || fits(x))?;
            for (column, unit) in columns.iter().zip(units) {
                convert(column, unit);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn blocks<V: Lanes, F: Quantize>(self) -> std::result::Result<(), Unrepresentable> {
        let groups = F::BLOCK / GROUP;
        let (scales, lines) = tile_mut::<F>(self.out, self.cols);
        let lines = lines.chunks_mut(groups * F::GROUP_LINES);
        let mut columns = vec![F32x16::ZERO; F::BLOCK];
        let mut importances = vec![F32x16::ZERO; if self.importance.is_some() { F::BLOCK } else { 0 }];
        for (index, (scales, lines)) in scales.iter_mut().zip(lines).enumerate() {
            let first = index * F::BLOCK;
            let columns = &mut columns[..lines.len() / F::GROUP_LINES * GROUP];
            for (group, columns) in columns.as_chunks_mut::<GROUP>().0.iter_mut().enumerate() {
                self.source.gather::<V>(self.rows, self.cols, self.first_row, first + group * GROUP, columns);
            }
            if !all_finite::<V>(columns) {
                find_unrepresentable(columns, self.first_row, first, f32::is_finite)?;
            }
            if let Some((importance, first_row)) = self.importance {
                for (group, importances) in importances.as_chunks_mut::<GROUP>().0.iter_mut().enumerate() {
                    importance.gather(first_row, first + group * GROUP, importances);
                }
            }
            F::quantize::<V>(columns, &importances, scales, lines);
            let infinite = F::steps(scales).map(|scale| scale & 0x7f80 == 0x7f80);
            if let Some(lane) = infinite.iter().position(|&infinite| infinite) {
                let largest = |x: &(usize, &F32x16), y: &(usize, &F32x16)| {
                    x.1.0[lane].abs().total_cmp(&y.1.0[lane].abs())
                };
                let (col, x) = columns.iter().enumerate().max_by(largest).unwrap_or((0, &F32x16::ZERO));
                return Err(Unrepresentable {
                    row: self.first_row + lane,
                    col: first + col,
                    value: x.0[lane],
                });
            }
        }
        Ok(())
    }
}

/// Finds the first value, in row order, that does not pass `fits`.
#[inline(always)]
fn find_unrepresentable(
    columns: &[F32x16],
    first_row: usize,
    first_col: usize,
    fits: impl Fn(f32) -> bool,
) -> std::result::Result<(), Unrepresentable> {
    for lane in 0..LANES {
        for (col, column) in columns.iter().enumerate() {
            if !fits(column.0[lane]) {
                return Err(Unrepresentable {
                    row: first_row + lane,
                    col: first_col + col,
                    value: column.0[lane],
                });
            }
        }
    }
    Ok(())
}

/// Returns true if all values are finite: 0 times a non-finite value is NaN, as is every sum with it.
#[inline(always)]
fn all_finite<V: Lanes>(columns: &[F32x16]) -> bool {
    let zero = V::splat(0.0);
    let mut sums = [zero; 4]; // four independent accumulators, to hide latency
    for columns in columns.as_chunks::<4>().0 {
        for (sum, column) in sums.iter_mut().zip(columns) {
            *sum = V::load(&column.0).mul_add(zero, *sum);
        }
    }
    sums.into_iter().all(|sum| sum.sum() == 0.0)
}
