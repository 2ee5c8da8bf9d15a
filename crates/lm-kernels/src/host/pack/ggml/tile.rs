//! Tiles of records: packing and dequantisation.

use std::marker::PhantomData;

use super::super::super::lanes::{LANES, Line};
use super::super::packing::Unrepresentable;
use super::planes::{row_code, store};
use super::{BlockFormat, ForBlocks, GROUP, GgmlType, RECORD, RowScales, Scales};

/// Sixteen rows of a matrix.
pub(in crate::host) struct RecordTile<'a, F> {
    lines: &'a [Line],
    format: PhantomData<F>,
}

impl<F> Clone for RecordTile<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for RecordTile<'_, F> {}

/// Up to 256 columns of 16 rows.
pub(in crate::host) struct Record<'a, F: BlockFormat> {
    /// Scales of the 16 rows.
    pub scales: &'a F::Scales,
    /// `F::BITS` lines of codes per 32 columns.
    pub lines: &'a [Line],
    /// The lines of both.
    pub all_lines: &'a [Line],
}

/// Lines of scales per record.
const fn scale_lines<F: BlockFormat>() -> usize {
    size_of::<F::Scales>() / size_of::<Line>()
}

/// Lines of a full record.
const fn record_lines<F: BlockFormat>() -> usize {
    scale_lines::<F>() + RECORD / GROUP * F::BITS
}

/// Lines of a tile of `cols` columns, a multiple of the group length.
fn tile_lines<F: BlockFormat>(cols: usize) -> Option<usize> {
    let scales = cols.div_ceil(RECORD).checked_mul(scale_lines::<F>())?;
    scales.checked_add((cols / GROUP).checked_mul(F::BITS)?)
}

/// Bytes of a tile with this number of columns.
pub(super) struct TileBytes(pub usize);

impl ForBlocks for TileBytes {
    type Output = Option<usize>;

    fn run<F: BlockFormat>(self) -> Option<usize> {
        tile_lines::<F>(self.0)?.checked_mul(size_of::<Line>())
    }
}

impl<'a, F: BlockFormat> RecordTile<'a, F> {
    /// Tile `index` of a matrix of `cols` columns.
    #[inline(always)]
    pub fn of(bytes: &'a [u8], index: usize, cols: usize) -> Self {
        let len = tile_lines::<F>(cols).unwrap_or(0);
        let lines: &[Line] = bytemuck::cast_slice(bytes);
        Self { lines: &lines[index * len..(index + 1) * len], format: PhantomData }
    }

    /// Records of the tile, in column order.
    #[inline(always)]
    pub fn records(self) -> impl Iterator<Item = Record<'a, F>> {
        self.lines.chunks(record_lines::<F>()).map(Record::of)
    }

    /// Scale and quants of a group of 32 columns of a row, in a type with one scale per group and no offset.
    #[cfg(feature = "burn")]
    pub(in super::super) fn group(self, lane: usize, group: usize) -> (f32, [i8; GROUP]) {
        let groups = RECORD / GROUP;
        let (record, group) = (self.records().nth(group / groups).expect("a record"), group % groups);
        let mut quants = [0; GROUP];
        for (j, quants) in quants.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            *quants = record.codes(lane, group, j).map(|code| code.wrapping_sub(F::ZERO) as i8);
        }
        (record.scales.of_row(lane, group).0, quants)
    }

    /// Dequantises a row.
    pub(in super::super) fn read_row(self, lane: usize, out: &mut [f32]) {
        for (record, out) in self.records().zip(out.chunks_mut(RECORD)) {
            for (group, out) in out.chunks_mut(GROUP).enumerate() {
                record.read_group(lane, group, out);
            }
        }
    }
}

impl<'a, F: BlockFormat> Record<'a, F> {
    #[inline(always)]
    fn of(all_lines: &'a [Line]) -> Self {
        let (scales, lines) = all_lines.split_at(scale_lines::<F>());
        Self { scales: &bytemuck::cast_slice(scales)[0], lines, all_lines }
    }

    /// The lines of its scales, for prefetching.
    #[inline(always)]
    pub fn scale_lines(&self) -> &'a [Line] {
        bytemuck::cast_slice(std::slice::from_ref(self.scales))
    }

    /// Codes of columns `4 j` to `4 j + 3` of a group of a row.
    fn codes(&self, lane: usize, group: usize, j: usize) -> [u8; 4] {
        row_code::<F>(&self.lines[group * F::BITS..(group + 1) * F::BITS], lane, j)
    }

    /// Dequantises 32 columns of a row, in the reference's order of operations.
    fn read_group(&self, lane: usize, group: usize, out: &mut [f32]) {
        for (j, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let codes = self.codes(lane, group, j);
            let (step, offset) = self.scales.of_row(lane, (group * GROUP + 4 * j) / F::Scales::COLUMNS);
            for (out, code) in out.iter_mut().zip(codes) {
                let scaled = step * (f32::from(code) - f32::from(F::ZERO));
                *out = offset.map_or(scaled, |offset| scaled + offset);
            }
        }
    }
}

/// Packs 16 rows of blocks.
pub(in super::super) struct PackBlocks<'a> {
    pub format: GgmlType,
    /// Blocks in ggml's layout.
    pub blocks: &'a [u8],
    pub rows: usize,
    pub cols: usize,
    pub first_row: usize,
    /// The tile's bytes, zeroed.
    pub out: &'a mut [u8],
}

impl PackBlocks<'_> {
    /// Packs the tile.
    pub fn pack(self) -> Result<(), Unrepresentable> {
        self.format.run(self)
    }
}

impl ForBlocks for PackBlocks<'_> {
    type Output = Result<(), Unrepresentable>;

    fn run<F: BlockFormat>(self) -> Self::Output {
        let Self { blocks, rows, cols, first_row, out, .. } = self;
        let row_blocks = cols / F::BLOCK;
        let lines: &mut [Line] = bytemuck::cast_slice_mut(out);
        for (index, record) in lines.chunks_mut(record_lines::<F>()).enumerate() {
            let (scales, lines) = record.split_at_mut(scale_lines::<F>());
            let scales: &mut F::Scales = &mut bytemuck::cast_slice_mut(scales)[0];
            for lane in 0..LANES.min(rows - first_row) {
                let mut codes = [0; RECORD];
                let columns = (cols - index * RECORD).min(RECORD);
                for (i, codes) in codes[..columns].chunks_mut(F::BLOCK).enumerate() {
                    let col = index * RECORD + i * F::BLOCK;
                    let block = (first_row + lane) * row_blocks + col / F::BLOCK;
                    let block = &blocks[block * F::BYTES..][..F::BYTES];
                    let scales = RowScales { scales: &mut *scales, lane, group: i * F::BLOCK / GROUP };
                    let row = first_row + lane;
                    F::read(block, codes, scales).map_err(|value| Unrepresentable { row, col, value })?;
                }
                let groups = lines.chunks_mut(F::BITS).zip(codes.as_chunks::<GROUP>().0);
                groups.for_each(|(lines, codes)| store::<F>(codes, lane, lines));
            }
        }
        Ok(())
    }
}
